"""The command that compares ways to release a table."""

import pytest

from cli_tools import MAP, answer, run, trips


def test_compare_prints_a_table_and_draws_a_picture(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    trips(tmp_path / "t.csv")
    how = ["--policies", "blocks:2,blocks:3", "--epsilons", "0.5,2", "--mechanisms", "ppim,krr"]
    said = answer(capsys, "compare", "t.csv", *MAP, *how, "-o", "c.png")
    assert [(row["policy"], row["mechanism"], row["epsilon"]) for row in said["rows"]] == [
        (p, m, e) for p in ("blocks:2", "blocks:3") for m in ("ppim", "krr") for e in (0.5, 2.0)
    ]
    assert (tmp_path / "c.png").read_bytes()[:4] == b"\x89PNG"
    assert said["persons"] == 7 and said["count"] == 300
    run("compare", "t.csv", *MAP, *how, "-o", "c.png", code=2)
    assert "c.png is there: --force overwrites it" in capsys.readouterr().err
    run("compare", "t.csv", "--cell-km", "0.4", *how)
    assert "epsilon, median" in capsys.readouterr().out
    for wrong, message in (
        (["--epsilons", "2,1"], "must ascend"),
        (["--mechanisms", "none"], "invalid choice: 'none'"),
        (["-o", "c.txt"], "name the picture"),
    ):
        run("compare", "t.csv", *MAP, *wrong, code=2)
        assert message in capsys.readouterr().err
    run("compare", "t.csv", code=2)
    assert "which map?" in capsys.readouterr().err


def test_options_of_any_command_may_come_from_a_file(tmp_path, monkeypatch, capsys):
    """--config was for release alone."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.toml").write_text('policy = "blocks:3"\nepsilon = 1.0\ncell_km = 0.4\n')
    said = answer(capsys, "certify", "--config", "c.toml", *MAP[:2])
    assert said["epsilon"] == 1.0 and said["policy"] == "blocks:3"
    (tmp_path / "d.toml").write_text("rows = 3\n")
    run("certify", "--config", "d.toml", code=2)
    assert "unknown key 'rows'" in capsys.readouterr().err

"""The command line, the demo and the docs, as a newcomer meets them."""

import os
import re
import subprocess
import sys

import matplotlib
import numpy as np
import pytest

import pglp_fast as pf
from cases import ROOT, large
from cli_tools import real_process
from pglp_fast import cli, synthetic

matplotlib.use("Agg")


def png_size(path):
    header = path.read_bytes()[:24]
    assert header[:8] == b"\x89PNG\r\n\x1a\n"
    return int.from_bytes(header[16:20], "big"), int.from_bytes(header[20:24], "big")


@large
def test_demo_prints_a_table_and_draws_a_picture(tmp_path, capsys):
    assert cli.main(["demo", "--out", str(tmp_path), "--people", "20000"]) == 0
    out = capsys.readouterr().out
    rows = re.findall(r"^(G_\w+)\s+(P-P?I?LM|P-PIM)((?:\s+\d\.\d{3}){4})\s+yes$", out, re.M)
    assert len(rows) == 8
    errors = {
        (policy, mechanism): [float(v) for v in values.split()]
        for policy, mechanism, values in rows
    }
    for policy in ("G_k9", "G_k16", "G_k25"):
        assert errors[policy, "P-PIM"] == sorted(
            errors[policy, "P-PIM"], reverse=True
        )  # less noise at larger epsilon
        assert errors[policy, "P-PIM"][-1] < errors[policy, "P-LM"][-1]
    assert png_size(tmp_path / "demo.png")[0] > 1000


def test_errors_are_one_line_and_exit_with_2(capsys):
    assert (
        cli.main(
            [
                "release",
                "nowhere.csv",
                "-o",
                "out.csv",
                "--epsilon",
                "1",
                "--policy",
                "blocks:3",
                "--cell-km",
                "1",
            ]
        )
        == 2
    )
    out, err = capsys.readouterr()
    assert (out, err) == ("", "pglp-fast: nowhere.csv is not there\n")
    assert cli.main(["demo", "--seed", "-1"]) == 2
    assert "argument --seed: must be at least 0, got -1" in capsys.readouterr().err


def test_help_and_errors_of_usage_import_no_numba():
    """Would catch an import of the engine at the top of any module that the parser needs."""
    code = "import sys; from pglp_fast.cli import main; print(main(sys.argv[1:])); "
    code += "print('numba' in sys.modules, 'numpy' in sys.modules)"
    for arguments in (
        ["--help"],
        ["release", "--help"],
        ["plot", "--help"],
        ["nothing"],
        ["release", "t.csv"],
    ):
        run = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            env=real_process()[1],
            capture_output=True,
            text=True,
            check=True,
        )
        assert run.stdout.endswith("False False\n"), arguments


def test_no_module_hides_a_public_name():
    """A module in the root takes the place of a function of its name once it is imported."""
    files = {path.stem for path in (ROOT / "pglp_fast").iterdir()}
    assert files & set(pf.__all__) == {"experiments", "plot"}


def test_help_and_version_come_without_compiling():
    run, env = real_process()
    help_text = subprocess.run(
        [*run, "--help"], env=env, capture_output=True, text=True, check=True
    ).stdout
    assert "demo" in help_text
    assert "warmup" in help_text
    version = subprocess.run(
        [*run, "--version"], env=env, capture_output=True, text=True, check=True
    ).stdout
    assert version.splitlines()[0] == f"pglp-fast {pf.__version__}"
    assert "numba " in version and f"{os.cpu_count()} cores" in version  # for reports of bugs
    assert re.search(r"^CPU \S.* \(LLVM: \w+\)", version, re.M)  # what Numba compiles for


@large
def test_warmup_compiles(capsys):
    assert cli.main(["warmup"]) == 0
    assert "compiled and cached" in capsys.readouterr().out


def test_the_city_is_the_same_every_time():
    a, b = synthetic.synthetic_city(), synthetic.synthetic_city()
    assert (a.density == b.density).all()
    assert a.density.sum() == pytest.approx(1)
    assert a.density.min() == 0  # the river
    assert set(np.unique(a.categories)) == {-1, 0, 1, 2, 3, 4}
    assert (a.density[a.people(1000)] > 0).all()


def test_the_readme_speaks_of_what_is_there():
    """Its two commands, its links, and its Python, which runs."""
    text = (ROOT / "README.md").read_text()
    assert re.search(r'^pip install "\.\[cli\]" && pglp-fast demo$', text, re.M)
    assert re.search(r'^pip install -e "\.\[test\]" && pytest$', text, re.M)
    for link in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (ROOT / link).exists(), link


def test_everything_in_all_is_there():
    """Also what is imported only when asked for."""
    assert set(pf.__all__) <= set(dir(pf))
    for name in pf.__all__:
        assert getattr(pf, name) is not None
    with pytest.raises(AttributeError, match="nothing"):
        _ = pf.nothing


@large
def test_compiling_is_said_where_somebody_looks(monkeypatch, capsys):
    """Once, on a terminal, where a kernel is not in the cache; a minute of silence looks like a
    hang."""
    from pglp_fast.cli import terminal

    terminal.warn_of_compiling("no.such_kernel")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(terminal.sys.stderr, "isatty", lambda: True)
    terminal.warn_of_compiling("no.such_kernel")
    assert "compiling, once on this machine" in capsys.readouterr().err
    pf.blocks(pf.Grid(2, 2), 2).edges()
    terminal.warn_of_compiling("graph.expand")
    assert capsys.readouterr().err == ""


def test_the_kernels_that_commands_ask_for_are_there():
    """Named by file and kernel: a name that is gone would say "compiling" for ever."""
    commands = "".join(p.read_text() for p in (ROOT / "pglp_fast" / "cli").glob("*.py"))
    calls = re.findall(r"warn_of_compiling\((?!kernel)([^)]*)\)", commands)
    names = re.findall(r'"(\w+)\.(\w+)"', " ".join(calls))
    assert len(names) >= len(calls) > 0
    for module, name in names:
        (file,) = (ROOT / "pglp_fast" / "_kernels").rglob(f"{module}.py")
        assert f"\ndef {name}(" in file.read_text()

"""Every subcommand: what its help says runs, and what it answers."""

import argparse
import json
import re
import shlex
import subprocess
import sys

import matplotlib
import numpy as np
import pytest

import pglp_fast as pf
from cases import ROOT, large
from cli_tools import MAP, answer, read, real_process, run, the_grid, trips
from pglp_fast import cli
from pglp_fast.cli.parser import arguments_of, make_parser
from pglp_fast.pipeline.released import STATUSES

pytestmark = pytest.mark.usefixtures("here")

matplotlib.use("Agg")
PROMISE = ["--epsilon", "1", "--policy", "blocks:3"]
COMMANDS = {
    "demo", "simulate", "city", "fit", "release", "compare", "certify", "attack", "plot", "report",
    "experiment", "warmup", "convert", "completion",
}  # fmt: skip


def subcommands():
    parser = make_parser()
    found = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    return found.choices


def test_every_option_is_explained_and_every_command_has_examples():
    assert set(subcommands()) == COMMANDS
    for name, parser in subcommands().items():
        text = parser.format_help()
        assert (
            f"examples:\n  pglp-fast {name}" in text or "examples:\n  pglp-fast simulate" in text
        ), name
        assert re.search(rf"^  pglp-fast {name}\b", text, re.M), name
        for action in parser._actions:
            hidden = action.help is argparse.SUPPRESS
            assert action.help, (name, action.dest)
            for option in action.option_strings:
                assert hidden or option in text, (name, option)
        ours = text.partition("\n\n")[2]  # the usage is laid out by argparse
        assert max(map(len, ours.splitlines())) <= 100
    assert "--json" in subcommands()["warmup"].format_help()


def examples(text):
    """(files, commands) of the examples of a help text: lines of the shell, and a job.toml if
    there is one."""
    shown = re.sub(r" \\\n +", " ", text[text.index("examples:\n") :])
    commands = re.findall(r"^ {2,4}pglp-fast (.*)$", shown, re.M)
    toml = re.findall(r"^ {4}(\w+ = .*)$", shown, re.M)
    return ({"job.toml": "\n".join(toml)} if toml else {}), commands


@large
@pytest.mark.parametrize("name", ["", *sorted(COMMANDS)])
def test_the_examples_of_the_help_texts_run(tmp_path, name, capsys):
    """As they stand there, one after the other in one folder."""
    text = subcommands()[name].format_help() if name else make_parser().format_help()
    files, commands = examples(text)
    for path, content in files.items():
        (tmp_path / path).write_text(content)
    assert len(commands) >= 1
    for command in commands:
        # half a minute of experiments shows no more than a few seconds of them
        less = ["--quick"] if name == "experiment" else []
        assert cli.main([*shlex.split(command), *less]) == 0, (command, capsys.readouterr().err)


@large
def test_the_page_on_the_command_line_shows_what_is_printed(tmp_path, capsys):
    """Every command of docs/cli.md, in order, prints what the page says (and a note that it
    quotes)."""
    page = (ROOT / "docs" / "cli.md").read_text()
    blocks = re.findall(r"^```console\n(.*?)^```", page, re.M | re.S)
    assert len(blocks) >= 4
    for block in blocks:
        for command, shown in re.findall(r"^\$ pglp-fast (.*)\n((?:(?!\$ ).*\n)*)", block, re.M):
            capsys.readouterr()
            assert cli.main(shlex.split(command)) == 0, command
            out, err = capsys.readouterr()
            notes = "".join(
                line for line in shown.splitlines(keepends=True) if line.startswith("note: ")
            )
            assert notes in err
            assert out == shown.removeprefix(notes)
    quoted = re.search(r"^```\n(user,.*?)^```", page, re.M | re.S)[1]
    assert (tmp_path / "private.csv").read_text().startswith(quoted)
    (tmp_path / "job.toml").write_text(re.search(r"^```toml\n(.*?)^```", page, re.M | re.S)[1])
    run("release", "--config", "job.toml", "--force")


def test_the_help_of_release_states_the_defaults():
    text = subcommands()["release"].format_help()
    assert "(default: the user and the time)" in text and "(default: 131072)" in text
    for status in set(STATUSES) - {"late"}:  # of batches, which come in any order
        assert re.search(rf"\b{status}\b", text)


def test_usage_errors_return_2_and_help_returns_0(capsys):
    assert cli.main([]) == 2
    assert cli.main(["nothing"]) == 2
    assert cli.main(["--help"]) == 0
    assert cli.main(["release", "--help"]) == 0
    assert (
        cli.main(["certify", "--eps", "1", *MAP, "--policy", "blocks:3"]) == 2
    )  # no abbreviations: options may be added
    assert "Traceback" not in capsys.readouterr().err


def test_a_real_process_speaks_with_exit_codes_and_one_document(tmp_path):
    command, env = real_process()

    def process(*arguments):
        return subprocess.run(
            [*command, *arguments], env=env, capture_output=True, text=True, check=False
        )

    done = process("simulate", "-o", "t.csv", "--users", "3", "--steps", "4", "--json")
    assert (done.returncode, json.loads(done.stdout)["rows"]) == (0, 12)
    done = process("simulate", "-o", "t.csv")
    assert (done.returncode, done.stdout, done.stderr) == (
        2,
        "",
        "pglp-fast: t.csv is there: --force overwrites it\n",
    )


def test_interruption_returns_130(monkeypatch, capsys):
    def stop(options):
        raise KeyboardInterrupt

    monkeypatch.setattr("pglp_fast.cli.warmup.warm_up", lambda: stop(None))
    assert cli.main(["warmup"]) == 130
    assert capsys.readouterr().err == "pglp-fast: stopped\n"


def test_values_that_start_with_a_minus_are_values():
    assert arguments_of(
        ["x", "--bounds", "-34,-33,18,19", "--utc-offset", "-5h", "--seed", "-1"]
    ) == ["x", "--bounds=-34,-33,18,19", "--utc-offset=-5h", "--seed", "-1"]


# -- certify


def test_certify_answers_yes_and_no(monkeypatch, capsys):
    said = answer(capsys, "certify", *PROMISE, *MAP)
    c = pf.certify(pf.PPIM(pf.blocks(the_grid(), 3), epsilon=1.0))
    assert said["ok"] is True and said["worst"] == c.worst and said["edges"] == c.edges
    run("certify", *PROMISE, *MAP)
    assert "the promise holds" in capsys.readouterr().out

    from dataclasses import replace

    import pglp_fast.mechanisms.certificate  # noqa: F401

    module = sys.modules["pglp_fast.mechanisms.certificate"]
    monkeypatch.setattr(
        module,
        "certify",
        lambda m: replace(c, ok=False, reason="a ratio of weights is above e^epsilon"),
    )
    assert answer(capsys, "certify", *PROMISE, *MAP, code=1)["ok"] is False
    run("certify", *PROMISE, *MAP, code=1)
    assert "FAILS" in capsys.readouterr().out


def test_certify_wants_a_map(capsys):
    run("certify", *PROMISE, "--cell-km", "1", code=2)
    assert "which map? Give --bounds and --cell-km, or --mobility MODEL" in capsys.readouterr().err


# -- simulate


def test_simulated_people_are_the_same_for_the_same_seed(tmp_path, capsys):
    small = [
        "--users",
        4,
        "--steps",
        6,
        "--bounds",
        "35.68,35.72,139.60,139.65",
        "--cell-km",
        "0.4",
    ]
    run("simulate", "-o", "a.csv", *small)
    run("simulate", "-o", "b.csv.gz", *small)
    run("simulate", "-o", "c.csv", *small, "--seed", 1)
    a, b, c = (read(tmp_path / name) for name in ("a.csv", "b.csv.gz", "c.csv"))
    assert a == b != c and len(a) == 24
    g = the_grid()
    cells = g.locate([float(r["lat"]) for r in a], [float(r["lon"]) for r in a]).reshape(4, 6)
    assert (cells >= 0).all()
    hop = np.abs(g.xy(cells[:, 1:].ravel()) - g.xy(cells[:, :-1].ravel())).max()
    assert 0 < hop <= 0.4 + 1e-9  # to one of the eight around
    assert [r["time"] for r in a[:2]] == ["2026-01-05T00:00:00Z", "2026-01-05T00:05:00Z"]
    run("simulate", "-o", "d.csv", *small, "--missing", 0.5)
    assert 3 < len(read(tmp_path / "d.csv")) < 21
    run("simulate", "-o", "e.xls", *small, code=2)
    assert "name the table .csv, .csv.gz or .parquet" in capsys.readouterr().err
    run("simulate", "-o", "e.csv", *small, "--start", "soon", code=2)
    assert "--start must be a moment" in capsys.readouterr().err


def test_simulated_parquet_is_the_simulated_text(tmp_path):
    pytest.importorskip("pyarrow")
    small = ["--users", 3, "--steps", 5, "--places", "places.csv"]
    run("simulate", "-o", "a.csv", *small)
    run("simulate", "-o", "a.parquet", *small, "--force")
    a, b = pf.read_table("a.csv"), pf.read_table("a.parquet")
    assert a.user.values().tolist() == b.user.values().tolist() and (a.time == b.time).all()
    assert (a.lat == b.lat).all() and (a.lon == b.lon).all()
    assert {r["category"] for r in read(tmp_path / "places.csv")} == {
        "home",
        "food",
        "shop",
        "work",
        "school",
    }


def test_simulated_days(tmp_path, capsys):
    """A folder of parts, a table and a model of one city; the same people, however written."""
    parquet = pytest.importorskip("pyarrow.parquet")
    small = ["--days", "--users", 5000, "--steps", 3, "--step", "1h", *MAP]
    run("simulate", "-o", "city", *small, "--model", "m.npz", "--periods", 4)
    run("simulate", "-o", "city.csv", *small)
    parts = sorted((tmp_path / "city").iterdir())
    assert [p.name for p in parts] == ["part-00000.parquet", "part-00001.parquet"]
    assert [parquet.read_metadata(p).num_rows for p in parts] == [4096 * 3, 904 * 3]
    a, b = pf.read_table("city"), pf.read_table("city.csv")
    assert a.user.values().tolist() == b.user.values().tolist() and (a.lat == b.lat).all()
    m = pf.MobilityModel.open("m.npz")
    assert m.periods == 4 and m.notes["step_ms"] == 3_600_000 and m.locations.same_map(the_grid())
    cells = the_grid().locate(a.lat, a.lon).reshape(5000, 3)
    assert (m.matrix(0).toarray()[cells[:, :-1], cells[:, 1:]] > 0).all()
    capsys.readouterr()
    run("simulate", "-o", "city", *small, code=2)
    assert "is there and is not empty: --force" in capsys.readouterr().err
    small[1:3] = ["--users", 3]
    run("simulate", "-o", "city", *small, "--force")
    assert len(list((tmp_path / "city").iterdir())) == 1  # no part of the other people is left
    run("simulate", "-o", "c.csv", "--model", "x.npz", code=2)
    assert "are for --days" in capsys.readouterr().err


@large
def test_a_city_all_the_way(tmp_path, capsys):
    few = ["--users", 40, "--steps", 8, "--step", "30min", "--periods", 4, *MAP, "--traces", 20]
    said = answer(capsys, "city", "-o", "town", *few)
    assert said["rows"] == 320 and said["certificate"]["ok"] and said["attacked"] == 20
    assert 0 < said["error_km"] < 3 and 0 < said["adversary_km"] < 3 and said["surrogates"] == 0
    assert {"simulate", "model", "release", "attack", "report"} == said["seconds"].keys()
    assert said["rows_per_second"] > 0 and said["peak_bytes"] > 1 << 20
    names = {p.name for p in (tmp_path / "town").iterdir()}
    assert names == {"trips", "private", "model.npz", "report.html", "summary.json"}
    assert json.loads((tmp_path / "town/summary.json").read_text()) == said
    run("city", "-o", "town", *few, code=2)
    assert "is there and is not empty" in capsys.readouterr().err


# -- plot


@pytest.mark.parametrize("end", ["png", "svg"])
def test_pictures_of_every_kind(tmp_path, capsys, end):
    trips(tmp_path / "t.csv", 60, users=2)
    run("release", "t.csv", "-o", "o.csv", *PROMISE, *MAP, "--keep", "all")
    starts = {"png": b"\x89PNG", "svg": b"<?xml"}
    said = answer(capsys, "plot", "map", "t.csv", "-o", f"map.{end}", "--cell-km", "0.4")
    assert said["on_map"] == said["rows"] == 60
    run("plot", "policy", "-o", f"policy.{end}", "--policy", "blocks:3", *MAP)
    said = answer(
        capsys, "plot", "noise", "-o", f"noise.{end}", *PROMISE, *MAP, "--at", "35.70,139.62"
    )
    assert said["cell"] == the_grid().locate(35.70, 139.62)
    said = answer(
        capsys, "plot", "trace", "o.csv", "-o", f"trace.{end}", *MAP, "--user", "u1", "--steps", 7
    )
    assert said["rows"] == 7
    for kind in ("map", "policy", "noise", "trace"):
        assert (tmp_path / f"{kind}.{end}").read_bytes().startswith(starts[end])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["map", "-o", "a.png", "--cell-km", "1"], "plot map needs TABLE"),
        (["noise", "-o", "a.png", "--policy", "blocks:3", *MAP], "plot noise needs --epsilon"),
        (["map", "t.csv", "-o", "a.png"], "which map? Give --cell-km"),
        (
            ["map", "t.csv", "-o", "a.bmp", "--cell-km", "1"],
            "name the picture .png, .svg, .pdf or .html",
        ),
        (
            ["map", "t.csv", "-o", "a.png", "--cell-km", "1", "--epsilon", "1"],
            "plot map has no use for --epsilon: leave it out",
        ),
        (
            ["policy", "t.csv", "-o", "a.png", "--policy", "blocks:3", *MAP],
            "plot policy has no use for TABLE",
        ),
        (["noise", "-o", "a.png", *PROMISE, *MAP, "--at", "1,2"], "--at 1,2 is off the map"),
        (["noise", "-o", "a.png", *PROMISE, *MAP, "--at", "1"], "'1' is not LAT,LON"),
        (
            ["trace", "o.csv", "-o", "a.png", *MAP, "--user", "nobody"],
            "has no released row of user 'nobody'; it has e.g. 'u",
        ),
        (["trace", "bare.csv", "-o", "a.png", *MAP], "has no true places"),
    ],
)
def test_pictures_that_cannot_be_drawn(tmp_path, capsys, arguments, message):
    trips(tmp_path / "t.csv", 20, users=2)
    run("release", "t.csv", "-o", "o.csv", *PROMISE, *MAP, "--keep", "all")
    run("release", "t.csv", "-o", "bare.csv", *PROMISE, *MAP)
    run("plot", *arguments, code=2)
    err = capsys.readouterr().err
    assert message in err and "Traceback" not in err
    assert not [p for p in tmp_path.iterdir() if p.suffix in (".png", ".bmp")]


# -- experiment, demo, warmup


@large
def test_experiments(capsys, tmp_path):
    """The real ones, quickly: files, claims in words and as JSON, and names that do not exist."""
    said = answer(
        capsys, "experiment", "policies", "--out", tmp_path / "res", "--quick", "--seed", 3
    )
    assert {claim["verdict"] for claim in said["claims"]} <= {
        "supported",
        "not supported",
        "undecided",
    }
    region = {"claim": "E_r = 0 for G_k25", "experiment": "policies", "verdict": "supported"}
    assert region | {"size": ""} in said["claims"]
    assert (tmp_path / "res" / "policies" / "results.csv").exists()
    assert (tmp_path / "res" / "policies" / "findings.md").exists()
    again = ["experiment", "policies", "--out", tmp_path / "res", "--quick", "--no-progress"]
    run(*again, code=2)
    assert "findings.md is there: --force overwrites it" in capsys.readouterr().err
    run(*again, "--force")
    printed = capsys.readouterr()
    assert "supported" in printed.out
    assert "numbers, figures and findings are in" in printed.out
    run("experiment", "nothing", code=2)
    assert "invalid choice: 'nothing'" in capsys.readouterr().err
    run("experiment", "policies", "--quick", "--data", tmp_path, code=2)
    assert "runs on a small made-up city" in capsys.readouterr().err


@large
def test_demo_and_warmup_in_json(capsys, tmp_path):
    assert answer(capsys, "demo", "--people", 2000, "--out", tmp_path)["picture"].endswith(
        "demo.png"
    )
    before = (tmp_path / "demo.png").read_bytes()
    run("demo", "--people", 2000, "--out", tmp_path, code=2)
    assert "demo.png is there: --force overwrites it" in capsys.readouterr().err
    assert (tmp_path / "demo.png").read_bytes() == before
    run("demo", "--people", 2000, "--out", tmp_path, "--force")
    assert answer(capsys, "warmup")["seconds"] > 0

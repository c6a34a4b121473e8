"""Policies, epsilons, budgets and ledgers by person and time on the command line."""

import contextlib
import csv

import numpy as np
import pytest

import pglp_fast as pf
from cli_tools import MAP, answer, read, run, trips

pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    at = tmp_path_factory.mktemp("choices")
    rows = list(csv.reader(trips(at / "t.csv", 300).read_text().splitlines()))
    rng = np.random.default_rng(2)
    body = [[*row, rng.choice(["night", ""]), rng.choice(["0.5", ""])] for row in rows[1:]]
    with (at / "t.csv").open("w", newline="") as file:
        csv.writer(file).writerows([[*rows[0], "wish", "eps"], *body])
    with contextlib.chdir(at):
        run("fit", "t.csv", "-o", "m.npz", *MAP, "--step", "5min")
    return at


@pytest.fixture
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)
    return folder


PROMISE = ["--epsilon", "1", "--policy", "blocks:3"]
MOVES = [*PROMISE, "--mobility", "m.npz"]
NIGHT = ["--policies", "night=blocks:4"]


def test_columns_schedules_and_config_files(here, capsys):
    run(
        "release", "t.csv", "-o", "a.csv", *MOVES, *NIGHT, "--policy-column", "wish",
        "--epsilon-column", "eps", "--seed", 1, "--force",
    )  # fmt: skip
    made = read(here / "a.csv")
    assert {r["released_policy"] for r in made} >= {"default", "night"}
    assert {r["released_epsilon"] for r in made} >= {"1.0", "0.5"}
    plan = pf.Plan(
        policy="blocks:3", epsilon=1.0, mobility="m.npz", policies={"night": "blocks:4"},
        policy_column="wish", epsilon_column="eps", seed=1,
    )  # fmt: skip
    pf.release_files("t.csv", "b.csv", plan, force=True)
    assert (here / "a.csv").read_bytes() == (here / "b.csv").read_bytes()
    (here / "s.toml").write_text('[times]\n"00:00-12:00" = {policy = "night", epsilon = 0.25}\n')
    (here / "job.toml").write_text(
        'table = "t.csv"\noutput = "d.csv"\nepsilon = 1.0\npolicy = "blocks:3"\n'
        'mobility = "m.npz"\nseed = 1\npolicies = {night = "blocks:4"}\n'
        '[schedule.times]\n"00:00-12:00" = {policy = "night", epsilon = 0.25}\n'
    )
    run(
        "release", "t.csv", "-o", "c.csv", *MOVES, *NIGHT, "--schedule", "s.toml", "--seed", 1,
        "--force",
    )  # fmt: skip
    run("release", "--config", "job.toml", "--force")
    assert (here / "c.csv").read_bytes() == (here / "d.csv").read_bytes()
    said = capsys.readouterr().out
    assert "policies by schedule: default, night" in said and "epsilon by schedule" in said


@pytest.mark.parametrize("moving", [True, False])
def test_the_headline_speaks_of_every_policy_that_held(here, capsys, moving):
    """At the largest epsilon that it held with, which may be more than --epsilon."""
    with (here / "t.csv").open() as file:
        rows = list(csv.DictReader(file))
    with (here / "h.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        for k, row in enumerate(rows):
            writer.writerow(row | {"wish": ["night", ""][k % 2], "eps": ["2.5", "0.5"][k % 2]})
    how = MOVES if moving else [*PROMISE, *MAP]
    others = ["--policies", "night=blocks:4,never=blocks:2"]
    columns = ["--policy-column", "wish", "--epsilon-column", "eps"]
    told = answer(capsys, "release", "h.csv", "-o", "h1.csv", *how, *others, *columns, "--force")
    parts = told["headline"].split("Under policy ")
    assert parts[1].startswith("default: ") and "3 x 3 cells" in parts[1] and "e^0.5" in parts[1]
    assert parts[2].startswith("night: ") and "4 x 4 cells" in parts[2] and "e^2.5" in parts[2]
    assert len(parts) == 3, "never is not told of"


def test_attack_and_report_know_what_held(here, capsys):
    """The adversary knows the choice: as ``observe`` does that is told of it."""
    run(
        "release", "t.csv", "-o", "a.csv", *MOVES, *NIGHT, "--policy-column", "wish",
        "--epsilon-column", "eps", "--seed", 1, "--force", "--keep", "all",
    )  # fmt: skip
    told = answer(capsys, "attack", "a.csv", *MOVES, *NIGHT)
    assert told["checked"] and told["truth"] and told["rows"]
    for other in ([], ["--policies", "night=blocks:5"]):
        run("attack", "a.csv", *MOVES, *other, code=2)
        assert "with policies='night=blocks:4': give the same" in capsys.readouterr().err
    run("report", "a.csv", "-o", "r.html", *MOVES, *NIGHT, "--force")
    assert (here / "r.html").stat().st_size > 10_000
    run(
        "release", "t.csv", "-o", "e.csv", *PROMISE, *MAP, *NIGHT, "--policy-column", "wish",
        "--force",
    )  # fmt: skip
    run("report", "e.csv", "-o", "e.html", *PROMISE, *MAP, *NIGHT, "--force")
    assert "rows under other policies or epsilons are left out" in (here / "e.html").read_text()


def test_budgets_windows_and_ledgers(here, capsys):
    how = [*MOVES, "--budget", "3", "--window", "1d", "--on-error", "skip", "--ledger", "spent"]
    (here / "spent").unlink(missing_ok=True)
    run("release", "t.csv", "-o", "f.csv", *how, "--force")
    first = sum(r["released_status"] == "step" for r in read(here / "f.csv"))
    run("release", "t.csv", "-o", "g.csv", *how, "--force")
    assert first and not any(r["released_status"] == "step" for r in read(here / "g.csv"))
    assert pf.Ledger.load("spent").epsilons().sum() == first
    several = ["--budget", "total=5,1d=2", "--on-error", "skip"]
    said = answer(capsys, "release", "t.csv", "-o", "h.csv", *MOVES, *several, "--force")
    assert said["budget"] == {"total": 5.0, "1d": 2.0}
    run("release", "t.csv", "-o", "x.csv", *PROMISE, *MAP, "--budget", 3, "--window", 4, code=2)
    assert "is for users who move" in capsys.readouterr().err


def test_weights_go_all_the_way(here, capsys):
    """A policy with weights released, certified, attacked and reported: the weights, not the edges
    alone, are what counts."""
    side = 12  # of the map: rows of three cells joined lightly, columns of two heavily
    rows = [(i, i + 1, 0.5) for i in range(side * side) if i % 3 < 2]
    rows += [(i, i + side, 2) for i in range(side * side) if i // side % 2 == 0]
    for name, heavier in (("w.csv", 1), ("v.csv", 2)):
        lines = [f"{a},{b},{w * heavier}\n" for a, b, w in rows]
        (here / name).write_text("from,to,weight\n" + "".join(lines))
    how = ["--epsilon", "1", "--policy", "edges:w.csv", "--mobility", "m.npz"]
    run("release", "t.csv", "-o", "w1.csv", *how, "--seed", 1, "--force")
    capsys.readouterr()
    proof = answer(capsys, "certify", *how)
    assert proof["ok"] and proof["worst"] <= 1
    told = answer(capsys, "attack", "w1.csv", *how)
    assert told["checked"]
    run("report", "w1.csv", "-o", "w.html", *how, "--force")
    assert (here / "w.html").stat().st_size > 10_000
    told_apart = ((here / "v.csv").read_text(), "not other edges"), (None, "not edges:v.csv")
    for text, words in told_apart:  # other weights under the same name, and under another
        other = how if text else [*how[:2], "--policy", "edges:v.csv", *how[4:]]
        if text:
            (here / "w.csv").write_text(text)
        for command in (["attack", "w1.csv"], ["report", "w1.csv", "-o", "v.html", "--force"]):
            run(*command, *other, code=2)
            assert words in capsys.readouterr().err


@pytest.mark.parametrize("moving", [True, False])
def test_the_expected_error_is_of_what_was_used(here, capsys, moving):
    """It was that of --policy at --epsilon, under which nobody was released."""
    with (here / "t.csv").open() as file:
        rows = list(csv.DictReader(file))
    with (here / "u.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(row | {"wish": "night", "eps": "0.5"} for row in rows)
    how = [*(MOVES if moving else [*PROMISE, *MAP]), "--force"]
    grid = pf.MobilityModel.open("m.npz").locations
    m = {
        (side, epsilon): pf.utility(pf.PPIM(pf.blocks(grid, side), epsilon=epsilon)).e_eu
        for side, epsilon in ((3, 0.5), (3, 1.0), (4, 1.0), (4, 0.5))
    }

    def told(*more):
        document = answer(capsys, "release", "u.csv", "-o", "v.csv", *how, *more)
        run("release", "u.csv", "-o", "v.csv", *how, *more)
        lines = capsys.readouterr().out.splitlines()
        return document["expected_error_km"], [x for x in lines if x.startswith("expected error")]

    km, (line,) = told("--epsilon-column", "eps")
    assert km == {"default": {"epsilon": 0.5, "km": pytest.approx(m[3, 0.5])}}
    assert f": at least {m[3, 0.5]:.3f} km, that at epsilon 0.5" in line
    km, (line,) = told(*NIGHT, "--policy-column", "wish")
    assert km == {"night": {"epsilon": 1.0, "km": pytest.approx(m[4, 1.0])}}
    assert f"under policy night: {m[4, 1.0]:.3f} km, if each" in line
    km, (line,) = told(*NIGHT, "--policy-column", "wish", "--epsilon-column", "eps")
    assert km["night"]["km"] == pytest.approx(m[4, 0.5]) and "under policy night: at least" in line
    km, (line,) = told()
    assert km == pytest.approx(m[3, 1.0]) and f": {m[3, 1.0]:.3f} km, if each" in line

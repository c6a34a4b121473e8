"""The paper's experiments: numbers that can be checked, criteria that can say no, files that are
complete."""

import csv
import os

import numba
import numpy as np
import pytest

import pglp_fast as pf
from cases import large
from pglp_fast import experiments as ex
from pglp_fast.experiments import (
    areas,
    claims,
    data,
    figures,
    mechanisms,
    policies,
    repair,
    single,
    trace_claims,
    traces,
)
from pglp_fast.experiments.rows import Row, select, write_csv
from pglp_fast.experiments.setup import Setup
from pglp_fast.space.synthetic import synthetic_city

SUPPORTED, NOT_SUPPORTED, UNDECIDED = ex.SUPPORTED, ex.NOT_SUPPORTED, ex.UNDECIDED


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """All experiments on the small city, and where they were written."""
    if numba.config.DISABLE_JIT:
        pytest.skip("large input")
    out = tmp_path_factory.mktemp("experiments")
    return {r.name: r for r in ex.run("all", out=out, quick=True, progress=False)}, out


# -- numbers


# E_eu in km at epsilon 0.3, 0.5, 1, 2: estimates from releases of evenly spread locations, 0.271 km
# cells. The map that they were
# made on is not recorded; it has cut-off blocks for k = 4 and 5 and none for k = 3, and of all maps
# 51 x 51 cells fits best.
KNOWN = {
    ("P-PIM", 3): (0.419, 0.402, 0.363, 0.293),
    ("P-PIM", 4): (0.606, 0.586, 0.531, 0.436),
    ("P-PIM", 5): (0.805, 0.776, 0.706, 0.584),
    ("P-LM", 3): (0.420, 0.406, 0.372, 0.315),
}
# km: two standard errors of 20,000 releases whose distance has a standard deviation of 0.35 km
SAMPLING = 0.005


@large
@pytest.mark.parametrize(("mechanism", "k"), KNOWN)
def test_exact_errors_agree_with_known_estimates(mechanism, k):
    """A wrong scale of the noise, or of the cells, or blocks of another size would be off by far
    more than sampling error."""
    grid = pf.Grid(51, 51, cell_km=0.271)
    prior = np.ones(grid.size)
    for epsilon, known in zip(single.EPSILONS, KNOWN[mechanism, k], strict=True):
        m = single.make_mechanism(
            mechanism, pf.blocks(grid, k), epsilon, pf.Domain.full(grid), prior
        )
        assert abs(pf.utility(m).e_eu - known) < SAMPLING, (epsilon, pf.utility(m).e_eu)


def test_estimates_agree_with_exact_errors(quick):
    """Releases and probabilities are of the same mechanism on the same people: with four
    standard errors to spare."""
    rows = [r for r in quick[0]["mechanisms"].rows if r.metric == "e_eu"]
    assert len(rows) == len(single.MECHANISMS) * len(single.POLICIES) * len(single.EPSILONS)
    for row in rows:
        assert abs(row.mean - row.exact) <= 2.1 * (row.high - row.low) + 1e-12, row
        assert row.low <= row.mean <= row.high


def test_claims_that_are_exact_hold(quick):
    """E_r under G_k25 and E_poi under G_poi are 0 by construction: regions or labels of another
    size would show."""
    rows = quick[0]["policies"].rows
    for metric, policy in (("e_r", "G_k25"), ("e_poi", "G_poi")):
        points = select(rows, metric=metric, policy=policy)
        assert len(points) == 16  # two mechanisms, four epsilons, two kinds of people
        assert all(row.exact == 0 and row.mean == 0 for row in points)
        others = [row.exact for row in select(rows, metric=metric) if row.policy != policy]
        assert min(others) > 0  # not zero for want of anything to err in
        assert policies.zero(rows, metric, policy).verdict == SUPPORTED


def test_optimal_errs_least_and_remapping_never_hurts(quick):
    """Exact figures of the mechanisms that know the prior, ordered as theory has it."""
    rows = quick[0]["mechanisms"].rows
    for policy in single.POLICIES:
        for epsilon in single.EPSILONS:
            at = {
                r.mechanism: r.exact for r in select(rows, policy=policy, x=epsilon, metric="e_eu")
            }
            assert at["P-PIM remapped"] <= at["P-PIM"] + 1e-9
            assert at["Optimal"] <= min(at.values()) + 1e-6
            left = {
                r.mechanism: r.exact
                for r in select(rows, policy=policy, x=epsilon, metric="adversary")
            }
            assert all(
                left[name] <= at[name] + 1e-9 for name in at
            )  # the adversary may always believe what is released


def test_the_same_seed_gives_the_same_numbers(quick, tmp_path):
    """Whatever the threads; another seed gives others. (Running times are kept apart.)"""
    names = ("policies", "repair", "traces")

    def files(threads, seed):
        pf.set_num_threads(threads)
        results = [
            ex.run(name, out=None, quick=True, seed=seed, progress=False)[0] for name in names
        ]
        return [write_csv(tmp_path / "results.csv", result.rows).read_bytes() for result in results]

    threads = pf.get_num_threads()
    first = [(quick[1] / name / "results.csv").read_bytes() for name in names]
    try:
        assert files(1, 0) == files(3, 0) == first
        assert all(a != b for a, b in zip(first, files(1, 1), strict=True))
    finally:
        pf.set_num_threads(threads)


# -- files


def test_files(quick):
    """Every file that is promised is there, readable and not empty."""
    results, out = quick
    assert tuple(results) == ex.NAMES
    for name, result in results.items():
        folder = out / name
        with open(folder / "results.csv", newline="") as file:
            table = list(csv.DictReader(file))
        assert tuple(table[0]) == ex.COLUMNS == tuple(Row.__dataclass_fields__)
        assert len(table) == len(result.rows) > 0
        for line, row in zip(table, result.rows, strict=True):
            assert float(line["mean"]) == pytest.approx(row.mean, rel=1e-9)
            assert float(line["low"]) <= float(line["mean"]) <= float(line["high"])
            assert line["data"] == row.data
        for figure in result.figures:
            assert (folder / f"{figure}.png").read_bytes().startswith(b"\x89PNG")
            assert "<svg" in (folder / f"{figure}.svg").read_text()
        text = (folder / "findings.md").read_text()
        assert text == result.findings()
        assert "a made-up city" in text
        assert all(claim.text in text and f"**{claim.verdict}**" in text for claim in result.claims)
    assert (out / "repair" / "times.csv").exists()
    assert (out / "findings.md").read_text() == ex.findings(list(results.values()))
    assert "learned from others" in results["traces"].findings()


def test_figures_are_the_same_every_time(quick):
    """No date and no random numbers in a picture: a repository that keeps it sees changes only
    where there are any."""
    figure = quick[0]["policies"].figures["policies"]()
    for ending in (
        "png",
        "svg",
    ):  # in the order they are written: laying out goes on from one to the next
        again = figures.save(figure, quick[1] / f"again.{ending}")
        assert again.read_bytes() == (quick[1] / "policies" / f"policies.{ending}").read_bytes()


# Each figure of the paper's section 5: its twin, what its axes show, and its lines
TWINS = {
    "P-LM against P-PIM": ("mechanisms", "paper", "epsilon", ["E_eu"], {"P-LM", "P-PIM"}),
    "policies": ("policies", "policies", "epsilon", ["E_eu", "E_r", "E_poi"],
                 {"G_k9", "G_k16", "G_k25", "G_poi"}),
    "repair": ("areas", "areas", "area (km^2)", ["E_eu", "ms"], {"min-area", "nearest"}),
    "traces, by mechanism": ("authors", "timestamps", "timestamp", ["E_eu"], {"P-LM", "P-PIM"}),
    "traces, means": ("authors", "epsilons", "epsilon", ["mean E_eu"], {"G_k9", "G_k16", "G_k25"}),
    "two data sets": ("authors", "datasets", "timestamp", ["E_eu"], {"G_k9", "G_k16", "G_k25"}),
}  # fmt: skip


@pytest.mark.parametrize("name", TWINS)
def test_every_figure_of_the_paper_has_its_twin(quick, name):
    """The same axes and the same lines, in the run of all."""
    experiment, figure, x, ys, lines = TWINS[name]
    drawn = quick[0][experiment].figures[figure]()
    shown = [axes for axes in drawn.axes if axes.lines]
    assert {axes.get_xlabel() for axes in shown} == {x}
    labels = [axes.get_ylabel() for axes in shown]
    for y in ys:
        assert any(label.startswith(y) for label in labels), labels
    assert lines <= {text.get_text() for legend in drawn.legends for text in legend.get_texts()}
    panels = {"mechanisms": 4, "policies": 3, "areas": 2, "datasets": 4}
    assert len(shown) >= panels.get(figure, panels.get(experiment, 1))


def test_a_picture_of_policies_shows_one_kind_of_people(monkeypatch):
    """Visits and users have a picture each: would catch lines that jump between the two."""
    from dataclasses import replace

    from pglp_fast.experiments import policies
    from pglp_fast.experiments.data import load_town
    from pglp_fast.experiments.setup import Setup

    town = load_town(None, quick=True, seed=0)
    town = replace(town, users=np.ones(town.grid.size, np.int64))
    monkeypatch.setattr(policies, "load_town", lambda *a, **k: town)
    found = policies.run(Setup(None, 2, 0, True, False))
    for name in ("policies", "users"):
        for axes in found.figures[name]().axes:
            for line in axes.lines:
                assert len(set(line.get_xdata())) == len(line.get_xdata())


def test_shared_axes_show_every_line():
    """An axis limited before the last panel is drawn would cut lines off."""
    rows = [
        [Row("d", "p", "m", "", "e", "x", x, y, y, y, 1) for x in (1.0, 2.0)] for y in (1.0, 5.0)
    ]
    panels = [figures.Panel("t", [figures.Line("a", r, 0)], "x", "y") for r in rows]
    drawn = figures.draw(panels, same_y=True)
    assert all(ax.get_ylim()[0] == 0 and ax.get_ylim()[1] > 5 for ax in drawn.axes)
    assert len(drawn.legends) == 1


def test_csv_leaves_what_is_not_there_empty(tmp_path):
    path = write_csv(
        tmp_path / "a.csv", [Row("d", "p", "m", "", "e", "x", 1.0, 0.1, 0.0, float("inf"), 3)]
    )
    assert path.read_text().splitlines()[1] == "d,p,m,,e,x,1,0.1,0,inf,3,"


# -- where the data is


def test_where_the_data_is(tmp_path, monkeypatch):
    """What is given goes first, then the variable, then the folder beside; a folder that is not
    there is an error."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.delenv(data.VARIABLE, raising=False)
    assert data.find_folder(None) is None
    (tmp_path / "shared" / "data").mkdir(parents=True)
    assert data.find_folder(None).resolve() == (tmp_path / "shared" / "data").resolve()
    assert data.find_folder("synthetic") is None
    monkeypatch.setenv(data.VARIABLE, os.fspath(here))
    assert data.find_folder(None) == here
    assert data.find_folder(tmp_path) == tmp_path
    with pytest.raises(pf.InvalidParameter, match="not there"):
        data.find_folder(tmp_path / "nowhere")
    monkeypatch.setenv(data.VARIABLE, "nowhere")
    with pytest.raises(pf.InvalidParameter, match=data.VARIABLE):
        data.find_folder(None)
    with pytest.raises(pf.InvalidTable, match=r"POI_TK.csv"):
        data.load_town(tmp_path)
    with pytest.raises(pf.InvalidTable, match="geolife"):
        data.load_movements(tmp_path)


def test_tokyo_from_a_file(tmp_path):
    """Restaurants are the places of category 3 on the map, their visits the weights; others and
    those off the map are not."""
    head = "poi_id,y,x,category,y_id,x_id,2D_id,count\n"
    lines = [
        "0,35.70,139.70,food/Ramen/3,1,1,1,4",
        "1,35.70,139.70,food/Cafe/3,1,1,1,1",
        "2,35.72,139.71,shops/Shop/1,1,1,1,7",
    ]
    lines += ["3,35.60,139.70,food/Ramen/3,1,1,1,9", "4,35.71,139.70,food/Ramen/,1,1,1,9"]
    (tmp_path / "POI_TK.csv").write_text(head + "\n".join(lines) + "\n")
    town = data.load_town(tmp_path)
    cell = int(town.grid.locate(35.70, 139.70))
    assert np.flatnonzero(town.restaurants == 0).tolist() == [cell]
    assert town.visits.sum() == town.visits[cell] == 5
    assert town.everywhere.sum() == 21  # a place without a category number is still visited
    assert "1 of 5 places" in town.source


def test_gowalla_from_a_file(tmp_path, monkeypatch):
    """A step is a check-in, in the order of time; those tested are left out of what others
    teach."""
    lines = []
    for user, n in ((7, 3), (8, 2)):
        lines += [f"{user}\t2010-01-0{n - i}T00:00:00Z\t34.0{3 + i}\t-118.3\t{i}" for i in range(n)]
    (tmp_path / "loc-gowalla_totalCheckins.txt").write_text("\n".join(lines) + "\n")
    with pytest.raises(pf.InvalidTable, match="no users but"):
        data.los_angeles(tmp_path)
    monkeypatch.setattr(data, "USERS", 1)
    moved = data.los_angeles(tmp_path)
    at = moved.grid.locate(np.array([34.05, 34.04, 34.03]), np.full(3, -118.3))
    assert moved.truth.shape == (1, data.STEPS)
    assert moved.truth[0, :3].tolist() == at.tolist()  # the table has the latest first
    assert (moved.truth[0, 3:] == -1).all()
    assert moved.everyone.prior[at].tolist() == [0.2, 0.4, 0.4]
    assert moved.others.prior[at].tolist() == [0.0, 0.5, 0.5]
    assert moved.everyone.model.matrix()[at[0], at[1]] == 1.0
    assert moved.others.model.matrix()[at[0], at[1]] == 0.0


def test_what_others_teach_excludes_those_tested():
    """A model that has seen the tested traces is no public knowledge."""
    moved, visits = data.load_movements(None, quick=True, seed=0)
    city = data._city(True, 0)
    for movement, cells in ((moved, city.walks(40, 24, 0)), (visits, city.visits(40, 24, 0))):
        users, steps = movement.truth.shape
        assert np.array_equal(movement.truth, cells[:users, :steps])
        for known, rows in ((movement.others, cells[users:]), (movement.everyone, cells)):
            count = np.bincount(rows.ravel(), minlength=city.grid.size)
            assert np.allclose(known.prior, count / count.sum())
            moves = known.model.matrix().tocoo()
            seen = set(
                zip(rows[:, :-1].ravel().tolist(), rows[:, 1:].ravel().tolist(), strict=True)
            )
            made = set(zip(moves.row.tolist(), moves.col.tolist(), strict=True))
            assert seen <= made
            assert all(a == b for a, b in made - seen)  # none is invented; who was never seen stays


def test_bad_options():
    for options in (
        {"name": "nothing"},
        {"name": "repair", "repetitions": 1},
        {"name": "repair", "seed": -1},
        {"name": "repair", "data": "."},
    ):
        with pytest.raises(pf.InvalidParameter):
            ex.run(**options, out=None, quick=True, progress=False)


def test_visits():
    city = synthetic_city(20, 20)
    visits = city.visits(50, 400, seed=1, places=3)
    assert np.array_equal(visits, city.visits(50, 400, seed=1, places=3))
    assert max(len(np.unique(row)) for row in visits) == 3
    assert (city.density[visits] > 0).all()
    shares = np.sort([np.sort(np.unique(row, return_counts=True)[1])[-1] / 400 for row in visits])
    assert 0.5 < np.median(shares) < 0.62  # 6/11 for the first of three


# -- criteria, on made-up numbers


def differences(*points):
    return [
        claims.Difference(str(i), value, low, high) for i, (value, low, high) in enumerate(points)
    ]


def test_judge():
    """A criterion that cannot say no, or that takes doubt for a yes, is none."""
    for points, verdict in (
        ([(-1, -2, -0.5), (-3, -4, -2)], SUPPORTED),
        ([(0, 0, 0)], SUPPORTED),
        ([(-1, -2, -0.5), (0.1, 0.05, 0.2)], NOT_SUPPORTED),
        ([(-1, -2, -0.5), (-0.1, -0.3, 0.1)], UNDECIDED),
        ([(0.1, -0.3, 0.5), (0.1, 0.05, 0.2)], NOT_SUPPORTED),
        ([(1, -np.inf, np.inf)], UNDECIDED),
        ([], UNDECIDED),
    ):
        claim = claims.judge("It is so", "because.", differences(*points), why="The reason.")
        assert claim.verdict == verdict, points
        assert ("The reason." in str(claim)) == (verdict != SUPPORTED and bool(points))
    assert claims.joint_level(1) == pytest.approx(0.95)
    assert claims.joint_level(10) == pytest.approx(0.995)


def exact_rows(error):
    """error(policy, mechanism, epsilon, metric)."""
    return [
        Row(
            "made up",
            p,
            m,
            "",
            metric,
            "epsilon",
            e,
            error(p, m, e, metric),
            0.0,
            9.0,
            5,
            error(p, m, e, metric),
        )
        for p in single.POLICIES
        for m in ("P-LM", "P-PIM")
        for e in single.EPSILONS
        for metric in single.METRICS
    ]


def test_mechanism_criterion_says_no():
    better = exact_rows(lambda p, m, e, metric: 1.0 - 0.1 * (m == "P-PIM"))
    assert mechanisms.ppim_no_worse(better).verdict == SUPPORTED
    once = exact_rows(
        lambda p, m, e, metric: (
            1.0 - 0.1 * (m == "P-PIM") + 0.2 * ((p, m, e) == ("G_k16", "P-PIM", 0.5))
        )
    )
    claim = mechanisms.ppim_no_worse(once)
    assert claim.verdict == NOT_SUPPORTED
    assert "G_k16, eps 0.5" in claim.evidence


def test_policy_criteria_say_no():
    size = {"G_k9": 1.0, "G_k16": 2.0, "G_k25": 3.0, "G_poi": 4.0}
    fine = exact_rows(
        lambda p, m, e, metric: size[p] if metric == "e_eu" else 0.5 - 0.1 * e / size[p]
    )
    assert policies.lowest(fine, "e_eu", "G_k9").verdict == SUPPORTED
    assert policies.falls_most(fine).verdict == SUPPORTED
    assert policies.zero(fine, "e_r", "G_k25").verdict == NOT_SUPPORTED
    other = exact_rows(
        lambda p, m, e, metric: 0.7 if (p, e) == ("G_k25", 2.0) else size[p] - 0.1 * e * size[p]
    )
    assert policies.lowest(other, "e_eu", "G_k9").verdict == NOT_SUPPORTED
    assert policies.falls_most(other).verdict == NOT_SUPPORTED
    drawn = [Row(*("d", "G_poi", "P-PIM", "", "e_poi", "epsilon", 1.0), 1e-6, 0.0, 1.0, 9, 0.0)]
    assert (
        policies.zero(drawn, "e_poi", "G_poi").verdict == NOT_SUPPORTED
    )  # one release in a million, whatever theory says


def made_up_errors(value, sizes=(10, 20), n=30):
    """value(strategy, size) with a little noise, the same for both strategies in a domain."""
    rng = np.random.default_rng(0)
    noise = {(kind, size): rng.normal(0, 0.01, n) for kind in repair.KINDS for size in sizes}
    return {
        (kind, c, s, size): value(s, size) + noise[kind, size] + rng.normal(0, 0.001, n)
        for kind in repair.KINDS
        for c in repair.CALIBRATIONS
        for s in repair.STRATEGIES
        for size in sizes
    }


def test_repair_criteria_say_no():
    fine = made_up_errors(lambda s, size: 0.3 + 0.01 * size + 0.05 * (s == "nearest"))
    assert repair.better(fine, "graph").verdict == SUPPORTED
    assert repair.grows(fine, "window", "graph").verdict == SUPPORTED
    wrong = made_up_errors(
        lambda s, size: 0.6 - 0.01 * size - 0.05 * (s == "nearest" and size == 20)
    )
    assert repair.better(wrong, "component").verdict == NOT_SUPPORTED
    assert repair.grows(wrong, "visited", "component").verdict == NOT_SUPPORTED
    same = made_up_errors(lambda s, size: 0.5)
    assert repair.grows(same, "window", "graph").verdict == UNDECIDED

    def spells(ms):
        steady = np.linspace(0.99, 1.01, 9)
        return [
            repair.Spell(k, c, s, n, ms(s, n) * steady)
            for k in repair.KINDS
            for c in repair.CALIBRATIONS
            for s in repair.STRATEGIES
            for n in (10, 20)
        ]

    slow = spells(lambda s, n: n * (1 + (s == "min-area")))
    assert repair.slower(slow, "graph").verdict == SUPPORTED
    assert repair.takes_longer(slow).verdict == SUPPORTED
    fast = spells(lambda s, n: (1 + (s == "nearest")) / n)
    assert repair.slower(fast, "graph").verdict == NOT_SUPPORTED
    assert repair.takes_longer(fast).verdict == NOT_SUPPORTED


def made_up_traces(error, domain=lambda data: 10.0):
    """error(data, policy, mechanism, t) plus what is each user's own."""
    rng = np.random.default_rng(1)
    own = rng.normal(1, 0.1, (12, 1))
    t = np.arange(30)
    out = []
    for name in ("gps", "stops"):
        for setting in (traces.OTHERS, traces.EVERYONE, traces.LETTER):
            for policy in traces.SIDES:
                for mechanism in ("P-LM", "P-PIM"):
                    values = own * error(name, policy, mechanism, t) + rng.normal(0, 1e-3, (12, 30))
                    sizes = domain(name) * own * np.ones(30)
                    out.append(
                        traces.Series(
                            name,
                            policy,
                            mechanism,
                            setting,
                            values,
                            None,
                            None,
                            sizes,
                            0 * sizes,
                            0 * sizes,
                        )
                    )
    return out


def test_trace_criteria_say_no():
    side = traces.SIDES
    fine = made_up_traces(
        lambda d, p, m, t: 0.1 * side[p] + 0.01 * t + 0.1 * (m == "P-LM") + 0.5 * (d == "gps"),
        lambda d: 20.0 if d == "gps" else 5.0,
    )
    wrong = made_up_traces(
        lambda d, p, m, t: 2 - 0.1 * side[p] - 0.01 * t - 0.1 * (m == "P-LM") - 0.5 * (d == "gps"),
        lambda d: 5.0 if d == "gps" else 20.0,
    )
    for series, verdict in ((fine, SUPPORTED), (wrong, NOT_SUPPORTED)):
        assert traces.ppim_better(series, "gps").verdict == verdict
        assert traces.grows(series, "gps", traces.OTHERS).verdict == verdict
        assert traces.grows(series, "gps", traces.LETTER).verdict == verdict
        assert traces.smallest_best(series, "stops", traces.EVERYONE).verdict == verdict
        assert traces.checkins_lower(series, "gps", "stops").verdict == verdict
        assert traces.smaller_domain(series, "gps", "stops").verdict == verdict
    flat = made_up_traces(lambda d, p, m, t: 1.0 + 0 * t)
    assert traces.grows(flat, "gps", traces.OTHERS).verdict == UNDECIDED


def test_slopes():
    """Least squares by user, over the timestamps that there are; NumPy's own fit says the same."""
    error = np.random.default_rng(0).random((3, 12))
    error[1, 7:] = np.nan
    known = [np.polyfit(np.arange(n), error[u, :n], 1)[0] for u, n in enumerate((12, 7, 12))]
    assert np.allclose(trace_claims.slopes(error), known)


def test_domains(quick):
    """Each has the size asked for, all within a window (or among cells that are visited)."""
    town = data.load_town(None, quick=True)
    setup = Setup(repetitions=20, quick=True)
    for domain in repair.draw_domains(town, "window", 9, setup):
        row, col = np.divmod(domain.cells(), town.grid.cols)
        assert len(domain) == 9
        assert max(np.ptp(row), np.ptp(col)) < 6
    for domain in repair.draw_domains(town, "visited", 30, setup):
        assert len(domain) == 30
        assert (town.everywhere[domain.cells()] > 0).all()


def test_areas_as_the_authors_ran_them():
    """Restaurant cells within 700 m are joined, and a domain is all of them in a square."""
    town = data.load_town(None, quick=True)
    eating = np.flatnonzero(town.restaurants >= 0).tolist()
    wanted = [
        [a, b] for a in eating for b in eating
        if a < b and town.grid.distance(a, b) <= 0.7
    ]  # fmt: skip
    assert areas.restaurant_policy(town).edges().tolist() == wanted
    for domain in areas.draw_areas(town, 5, Setup(repetitions=20, quick=True)):
        row, col = np.divmod(domain.cells(), town.grid.cols)
        assert len(domain) >= 2
        assert max(np.ptp(row), np.ptp(col)) < 5
        assert set(domain) <= set(eating)


def test_a_verdict_carries_its_size():
    claim = claims.judge("So", "c.", differences((-1, -2, -0.5), (0.002, 0.001, 0.003), (0, 0, 0)))
    assert claim.size == "by 2 m at worst, in 1 of 3"
    assert "**not supported** (by 2 m at worst, in 1 of 3)" in str(claim)
    slow = claims.judge("So", "c.", differences((0.6931, 0.5, 0.8)), unit="ln")
    assert slow.told == "not supported (by a factor 2.00 at worst, in 1 of 1)"
    assert claims.judge("So", "c.", differences((-1, -2, -0.5))).told == "supported"


def test_results_are_not_overwritten(tmp_path):
    (tmp_path / "areas").mkdir()
    (tmp_path / "areas" / "findings.md").write_text("mine")
    with pytest.raises(pf.InvalidParameter, match=r"findings.md is there: force=True"):
        ex.run("areas", out=tmp_path, quick=True, progress=False)
    assert (tmp_path / "areas" / "findings.md").read_text() == "mine"


def test_trace_errors_are_what_was_released():
    """Means over repetitions are taken for each user: a wrong reshape would mix users up."""
    if numba.config.DISABLE_JIT:
        pytest.skip("large input")
    moved, _ = data.load_movements(None, quick=True, seed=0)
    setup = Setup(repetitions=3, seed=5, quick=True)
    series = traces.release(moved, traces.OTHERS, "G_k9", "P-PIM", setup)
    seed = setup.seed_of("traces", moved.name, traces.OTHERS, "G_k9", "P-PIM")
    releaser = pf.TraceReleaser(pf.blocks(moved.grid, 3), moved.others.model, epsilon=1.0, rng=seed)
    users, steps = moved.truth.shape
    expected = np.zeros((users, steps))
    for u in range(users):
        for k in range(3):  # one user and repetition at a time, under its own number
            out = releaser.run(moved.truth[u : u + 1], priors=moved.others.prior, users=[3 * u + k])
            expected[u] += moved.grid.distance(moved.truth[u], out.released[0]) / 3
    assert np.allclose(series.error, expected)


# -- real data, where it is


@pytest.fixture(scope="module")
def folder():
    found = data.find_folder(None)
    if found is None or numba.config.DISABLE_JIT:
        pytest.skip(f"no real data: set {data.VARIABLE} to try it")
    return found


def test_real_restaurants(folder):
    """Claims that hold by construction hold on real places too; and P-PIM beats P-LM on every
    policy of blocks."""
    town = data.load_town(folder)
    assert (town.grid.rows, town.grid.cols) == (50, 51)
    assert "People Flow" in town.source
    assert "CC BY 4.0" in town.credit
    assert (town.visits > 0).sum() > 100
    assert ((town.visits > 0) <= (town.restaurants >= 0)).all()
    setup = Setup(folder, repetitions=2)
    graphs = single.paper_policies(town.grid, town.restaurants)
    rows = [
        r
        for p in graphs
        for m in ("P-LM", "P-PIM")
        for r in single.measure(town, p, graphs[p], m, setup)
    ]
    assert policies.zero(rows, "e_r", "G_k25").verdict == SUPPORTED
    assert policies.zero(rows, "e_poi", "G_poi").verdict == SUPPORTED
    for policy in single.POLICIES[:3]:
        for epsilon in single.EPSILONS:
            at = {
                r.mechanism: r.exact for r in select(rows, policy=policy, x=epsilon, metric="e_eu")
            }
            assert at["P-PIM"] < at["P-LM"]


def test_real_checkins(folder):
    """Nothing of those tested is in what others teach, and every tested step is on the map."""
    moved = data.los_angeles(folder)
    assert moved.truth.shape == (data.USERS, data.STEPS)
    assert (moved.truth[:, 0] >= 0).all()
    assert "but only" in moved.source
    there = moved.truth >= 0
    assert (moved.everyone.prior[moved.truth[there]] > 0).all()
    assert moved.others.prior.sum() == pytest.approx(1.0)
    assert (moved.others.prior > 0).sum() < (moved.everyone.prior > 0).sum()


# -- other data


def own_table(path, users=8, steps=30):
    """A table of walks in the made-up city, a fix every five minutes, with categories."""
    city = synthetic_city(12, 12, seed=0)
    walks = city.walks(users, steps, 0)
    where = city.grid.latlon(walks.ravel())
    lines = ["user,time,lat,lon,category"]
    for k, (lat, lon) in enumerate(where):
        u, t = divmod(k, steps)
        kind = ("food", "home")[int(walks.ravel()[k]) % 2]
        lines.append(f"{u},{1_700_000_100 + 300 * t},{lat:.6f},{lon:.6f},{kind}")
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_table_of_your_own(tmp_path):
    """One data set is enough for traces: claims about two are left out."""
    table = own_table(tmp_path / "mine.csv")
    for name in ("policies", "authors"):
        (result,) = ex.run(name, out=None, data=table, repetitions=2, progress=False)
        assert "mine.csv" in result.data and result.claims
        assert not any("Gowalla" in claim.text for claim in result.claims)
    town = data.load_town(table)
    assert 0 < (town.restaurants >= 0).sum() < town.grid.size
    assert town.visits.sum() < town.everywhere.sum() == 8 * 30
    empty = tmp_path / "short.csv"
    empty.write_text("user,time,lat,lon\n1,1700000000,35.6,139.6\n")
    with pytest.raises(pf.InvalidTable, match="no three persons with 10 steps"):
        data.load_movements(empty)


def test_geolife_without_gowalla(tmp_path, monkeypatch, quick):
    """The second data set may be missing: what is said of the first stays."""
    walks, _ = data.load_movements(None, quick=True)
    monkeypatch.setattr(data, "_beijing", lambda folder, seed: walks)
    found = data.load_movements(tmp_path)
    assert found == (walks, None)
    monkeypatch.setattr(traces, "load_movements", lambda *_, **__: found)
    result = traces.run(Setup(folder=None, repetitions=2, quick=True))
    assert {row.data for row in result.rows} == {"walks"}
    both = quick[0]["traces"].claims
    assert 0 < len(result.claims) < len(both)

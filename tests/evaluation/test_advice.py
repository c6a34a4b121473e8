"""Advice on one's own data: the figures are those of the functions it stands on."""

import numpy as np
import pytest

import pglp_fast as pf

GRID = pf.Grid.from_bounds(lat=(35.68, 35.72), lon=(139.60, 139.65), cell_km=0.4)
POLICIES = {"k9": pf.blocks(GRID, 3), "k25": pf.blocks(GRID, 5)}


def some_cells(users=6, steps=40):
    rng = np.random.default_rng(5)
    cells = rng.integers(0, GRID.size // 2, (users, steps))
    cells[0, :30] = -1
    return cells


def test_figures_are_those_of_utility_and_privacy_under_the_data():
    """Would catch a prior that is not the data's, or a row of another policy or epsilon."""
    cells = some_cells()
    counts = np.bincount(cells[cells >= 0], minlength=GRID.size)
    advice = pf.advise(
        cells, grid=GRID, policies=POLICIES, epsilons=[0.5, 2.0], mechanisms=["ppim", "plm"]
    )
    made = {"ppim": pf.PPIM, "plm": pf.PLM}
    keys = [(row.policy, row.mechanism, row.epsilon) for row in advice]
    assert keys == [(p, k, e) for p in POLICIES for k in made for e in (0.5, 2.0)]
    there = np.isin(np.arange(GRID.size), cells)
    for row in advice:
        m = made[row.mechanism](POLICIES[row.policy], epsilon=row.epsilon)
        left = pf.privacy(m, prior=counts)
        assert row.error_km == pytest.approx(pf.utility(m, prior=counts).e_eu, rel=1e-12)
        assert (row.adversary_km, row.told_km) == (left.error, left.told_error)
        ends = POLICIES[row.policy].edges()
        assert row.edges == len(ends) and row.kept_edges == there[ends].all(axis=1).sum()
        assert (row.epsilon_median, row.epsilon_most) == (40 * row.epsilon, 40 * row.epsilon)
        assert row.seconds > 0
    every = np.arange(GRID.size)
    oracle = min((GRID.distance(every, np.full_like(every, w)) * counts).sum() for w in every)
    assert advice.no_release_km == pytest.approx(oracle / counts.sum(), rel=0.02)
    assert advice.no_release_km >= oracle / counts.sum() * (1 - 1e-12)
    assert (advice.count, advice.persons) == (len(cells[cells >= 0]), 6)
    assert all(name in str(advice) for name in ("k25", "plm", "adversary km", "6 persons"))


def test_a_table_gives_what_its_cells_give():
    pd = pytest.importorskip("pandas")
    cells = some_cells()
    who, at = np.nonzero(cells >= 0)
    lat, lon = GRID.latlon(cells[who, at]).T
    start = pd.Timestamp("2024-05-01", tz="UTC")
    times = [start + pd.Timedelta(minutes=5 * int(t)) for t in at]
    frame = pd.DataFrame({"user": who, "time": times, "lat": lat, "lon": lon})
    how = dict(grid=GRID, policies=POLICIES, epsilons=[1.0])
    one, other = pf.advise(frame, **how), pf.advise(cells, **how)
    for a, b in zip(one, other, strict=True):
        assert (a.error_km, a.adversary_km, a.epsilon_most) == (
            b.error_km,
            b.adversary_km,
            b.epsilon_most,
        )
    swapped = frame.rename(columns={"lat": "lon", "lon": "lat"})
    swapped["lat"], swapped["lon"] = frame.lat - 20, frame.lon
    with pytest.raises(pf.InvalidTable, match="are off the map"):
        pf.advise(swapped, **how)


def test_what_has_no_exact_answer_is_left_open():
    wide = pf.Grid(50, 50, cell_km=0.5)
    advice = pf.advise([0, 7, 900], grid=wide, policies={"n8": pf.neighbours8(wide)}, epsilons=[1])
    assert np.isnan(advice.rows[0].adversary_km) and advice.rows[0].error_km > 0
    assert "too large for an exact answer" in str(advice) and advice.persons == 0
    assert advice.curves() == ([1.0], {}, {})
    solved = pf.advise(
        [0, 7], grid=wide, policies={"n8": pf.neighbours8(wide)}, epsilons=[1],
        mechanisms=["optimal"],
    )  # fmt: skip
    assert np.isnan(solved.rows[0].error_km), "no mechanism for this policy: the others go on"


@pytest.mark.parametrize(
    "change, message",
    [
        ({"policies": {}}, "at least one"),
        ({"epsilons": []}, "at least one entry"),
        ({"epsilons": [-1.0]}, "epsilon"),
        ({"mechanisms": ["none"]}, "mechanisms"),
        ({"policies": {"other": pf.blocks(pf.Grid(3, 3, cell_km=1.0), 3)}}, "another map"),
        ({"data": [-1, -1]}, "no place on the map"),
        ({"data": [GRID.size]}, "data has"),
        ({"columns": {"lat": "y"}}, "columns is for tables"),
    ],
)
def test_refusals(change, message):
    given = {"data": [0, 1], "policies": POLICIES, "epsilons": [1.0], **change}
    data = given.pop("data")
    with pytest.raises(pf.PGLPError, match=message):
        pf.advise(data, grid=GRID, **given)

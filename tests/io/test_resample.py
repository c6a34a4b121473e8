"""Cleaning and resampling, against literal versions in plain Python, and from real data to a
fitted model."""

import json
import math
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given, strategies as st

import pglp_fast as pf
from cases import DATA, large, real
from pglp_fast._util.times import duration, moment, shown
from pglp_fast.errors import InvalidLocation, InvalidParameter, InvalidTable, TooLarge

GRID = pf.Grid(4, 5, cell_km=1.0, origin=(35.0, 139.0))
START = moment("2020-01-01", "start")


def centre(cell):
    return tuple(GRID.latlon(cell).tolist())


def fixes(rows, **columns):
    """Tracks of (user, ms after START, cell or (lat, lon) or None)."""
    places = [
        (np.nan, np.nan) if p is None else p if isinstance(p, tuple) else centre(p)
        for _, _, p in rows
    ]
    times = np.array(
        [np.iinfo(np.int64).min if t is None else START + t for _, t, _ in rows], np.int64
    ).view("datetime64[ms]")
    users = [u for u, _, _ in rows] or np.empty(0, np.int64)
    return pf.Tracks.of(users, times, [p[0] for p in places], [p[1] for p in places], **columns)


# Cleaning


def naive_clean(rows, *, inside, window, duplicates, speed):
    """Literally: rows (user, ms, lat, lon) in table order; the rows kept and how many each step
    left out."""
    first_seen = list(dict.fromkeys(r[0] for r in rows))
    table = sorted(
        enumerate(rows),
        key=lambda r: (first_seen.index(r[1][0]), -math.inf if r[1][1] is None else r[1][1], r[0]),
    )
    table = [r for _, r in table]
    counts = []

    def step(kept):
        nonlocal table
        counts.append(len(table) - len(kept))
        table = kept

    step(
        [
            r
            for r in table
            if not math.isnan(r[2])
            and not math.isnan(r[3])
            and -90 <= r[2] <= 90
            and -360 <= r[3] <= 360
        ]
    )
    step([r for r in table if r[1] is not None and window[0] <= r[1] < window[1]])
    if inside is not None:
        step([r for r in table if inside(r[2], r[3])])
    if duplicates != "all":
        chosen = {}
        for r in table:
            if duplicates == "last" or r[:2] not in chosen:
                chosen[r[:2]] = r
        step(list(chosen.values()))
    if speed is not None:
        kept = []
        for r in table:
            before = kept[-1] if kept and kept[-1][0] == r[0] else None
            if before is None or haversine(before, r) <= speed * (r[1] - before[1]) / 3_600_000:
                kept.append(r)
        step(kept)
    return table, counts


def haversine(a, b):
    (la, lo), (lb, mo) = ([math.radians(x) for x in r[2:4]] for r in (a, b))
    h = math.sin((lb - la) / 2) ** 2 + math.cos(la) * math.cos(lb) * math.sin((mo - lo) / 2) ** 2
    return 2 * 6371.0088 * math.asin(math.sqrt(min(1.0, h)))


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "c"]),
            st.one_of(
                st.none(),
                st.integers(0, 8).map(lambda k: k * 60_000),
                st.integers(-(10**13), 10**13),
            ),
            st.one_of(
                st.none(), st.integers(0, 19), st.tuples(st.floats(-95, 95), st.floats(-185, 185))
            ),
        ),
        max_size=25,
    ),
    st.booleans(),
    st.sampled_from(["first", "last", "all"]),
    st.sampled_from([None, 30.0, 90.0]),
)
def test_cleaning(rows, on_map, duplicates, speed):
    """Each step's count and every row kept; rows in = rows kept + rows left out."""
    tracks = fixes(rows)
    low, high = moment("2001-01-01", ""), moment("2100-01-01", "")
    plain = [
        (r[0], None if r[1] is None else START + r[1], float(la), float(lo))
        for r, la, lo in zip(rows, tracks.lat, tracks.lon)
    ]
    inside = (lambda la, lo: GRID.locate(la, lo) >= 0) if on_map else None
    expected, counts = naive_clean(
        plain, inside=inside, window=(low, high), duplicates=duplicates, speed=speed
    )
    out = tracks.clean(GRID if on_map else None, duplicates=duplicates, max_speed_kmh=speed)
    assert (
        list(zip(out.user.values().tolist(), out.ms.tolist(), out.lat.tolist(), out.lon.tolist()))
        == expected
    )
    assert [s.dropped for s in out.report.steps] == counts
    assert out.report.rows == len(rows) == len(out) + sum(counts)
    assert out.report.kept == len(out)


def test_the_report():
    tracks = fixes(
        [
            ("a", 0, 3),
            ("a", 0, 4),
            ("a", 60_000, None),
            ("a", -(10**12), 3),
            ("a", 60_000, (80.0, 3.0)),
        ]
    )
    report = tracks.clean(GRID, max_speed_kmh=100).report
    assert str(report).splitlines() == [
        "  5 rows read",
        " -1 coordinates missing or not on Earth",
        " -1 times missing or outside 2001-01-01..2100-01-01",
        " -1 points outside the map",
        " -1 duplicates of a user and time (first kept)",
        "  0 faster than 100 km/h from the fix before",
        "  1 rows kept (20.0%)",
    ]
    assert json.loads(json.dumps(report.to_dict()))["dropped"]["points outside the map"] == 1
    again = (
        tracks.clean(GRID)
        .clean(GRID, window=("2019-12-31T12:00:00", None), duplicates="all")
        .report
    )
    assert again.rows == again.kept + sum(again.to_dict()["dropped"].values())
    assert "times missing or outside 2019-12-31T12:00:00.." in str(again)


def test_cleaning_sorts_and_keeps_the_stated_duplicate():
    tracks = fixes(
        [("b", 60_000, 1), ("a", 0, 2), ("b", 0, 3), ("b", 0, 4)], venue=["w", "x", "y", "z"]
    )
    assert tracks.clean().columns["venue"].values().tolist() == ["y", "w", "x"]
    assert tracks.clean(duplicates="last").columns["venue"].values().tolist() == ["z", "w", "x"]
    assert tracks.clean(duplicates="all").columns["venue"].values().tolist() == ["y", "z", "w", "x"]
    assert tracks.columns["venue"].values().tolist() == [
        "w",
        "x",
        "y",
        "z",
    ]  # the original is as it was


def test_cleaning_options_are_checked():
    tracks = fixes([("a", 0, 1)])
    for wrong in (
        {"duplicates": "none"},
        {"window": "2020"},
        {"window": ("2021-01-01", "2020-01-01")},
        {"window": ("x", None)},
    ):
        with pytest.raises(InvalidParameter):
            tracks.clean(**wrong)
    with pytest.raises(InvalidParameter):
        tracks.clean(max_speed_kmh=0)
    with pytest.raises(InvalidLocation):
        tracks.clean(pf.Points([[0.0, 0.0]]))
    assert len(tracks.clean(window=None)) == 1


def test_durations_and_moments():
    assert [duration(d, "d") for d in ("5min", "90 s", "1.5h", "1d", "250ms", "2m")] == [
        300_000,
        90_000,
        5_400_000,
        86_400_000,
        250,
        120_000,
    ]
    assert duration(timedelta(minutes=5), "d") == duration(np.timedelta64(5, "m"), "d") == 300_000
    assert [shown(ms) for ms in (300_000, 90_000, 86_400_000, 3_600_000, 1)] == [
        "5min",
        "90s",
        "1d",
        "1h",
        "1ms",
    ]
    for wrong in ("5", 5, "5 parsecs", "0s", "-5min", None, np.timedelta64("NaT")):
        with pytest.raises(InvalidParameter, match="d must be"):
            duration(wrong, "d")
    assert (
        moment("2020-01-01T09:00:00+09:00", "m")
        == moment("2020-01-01", "m")
        == moment(np.datetime64("2020-01-01"), "m")
    )
    for wrong in ("soon", 5.5, None, np.datetime64("NaT")):
        with pytest.raises(InvalidParameter):
            moment(wrong, "m")


# Resampling


def pick(fixes, rule, at):
    if rule == "nearest":
        return min(fixes, key=lambda fix: abs(fix[1] - at))  # the first of equals
    return fixes[0] if rule == "first" else fixes[-1]


def naive_resample(rows, step, *, rule, carry, max_gap, split, origin):
    """Literally: rows (user, ms, cell or -1 off the map, trajectory) to a list of (user, first
    step, cells)."""
    order = list(dict.fromkeys(r[0] for r in rows))
    out = []
    for user in order:
        mine = sorted((r for r in rows if r[0] == user), key=lambda r: r[1])
        segments, last = [], None
        for r in mine:
            if (
                last is None
                or (max_gap is not None and r[1] - last[1] > max_gap)
                or (split and r[3] != last[3])
            ):
                segments.append([])
            segments[-1].append(r)
            last = r
        for segment in segments:
            bins = {}
            for r in segment:
                offset = r[1] - origin
                k = (
                    math.floor((offset + step // 2) / step)
                    if rule == "nearest"
                    else math.floor(offset / step)
                )
                bins.setdefault(k, []).append(r)
            cells, seen = [], None
            for k in range(min(bins), max(bins) + 1):
                if k in bins:
                    cell = pick(bins[k], rule, origin + k * step)[2]
                    seen = (k, cell) if cell >= 0 else None
                    cells.append(cell)
                else:
                    ok = seen is not None and carry is not None and (k - seen[0]) * step <= carry
                    cells.append(seen[1] if ok else -1)
            out.append((user, origin + min(bins) * step, cells))
    return out


@given(
    st.lists(
        st.tuples(
            st.sampled_from("ab"), st.integers(-40, 40), st.integers(-1, 19), st.integers(0, 1)
        ),
        min_size=1,
        max_size=30,
    ),
    st.sampled_from([1, 3, 7, 10]),
    st.sampled_from(["first", "last", "nearest"]),
    st.sampled_from([None, 5, 20, 60]),
    st.sampled_from([None, 4, 10, 25]),
    st.booleans(),
    st.sampled_from([0, 2, -13]),
)
def test_resampling(rows, step, rule, carry, max_gap, split, origin):
    """Every cell, start and owner, on unsorted fixes with repeats, before and after the origin,
    on and off the map."""
    minute = 60_000
    tracks = fixes(
        [(u, t * minute, (0.0, 0.0) if c < 0 else c) for u, t, c, _ in rows],
        trajectory=[r[3] for r in rows],
    )
    plain = [(u, START + t * minute, c, p) for u, t, c, p in rows]
    # fixes of one user and moment keep the table's order, whatever their trajectory
    expected = naive_resample(
        plain,
        step * minute,
        rule=rule,
        carry=None if carry is None else carry * minute,
        max_gap=None if max_gap is None else max_gap * minute,
        split=split,
        origin=START + origin * minute,
    )
    traces = tracks.resample(
        GRID, f"{step}min", rule=rule, carry=None if carry is None else f"{carry}min",
        max_gap=None if max_gap is None else f"{max_gap}min", split_trajectories=split,
        origin=np.datetime64(START + origin * minute, "ms"),
    )  # fmt: skip
    got = list(
        zip(
            traces.user.values().tolist(),
            traces.start.view(np.int64).tolist(),
            [t.tolist() for t in traces],
            strict=True,
        )
    )
    assert got == expected
    report = traces.report
    assert (report.fixes, report.traces, report.steps) == (
        len(rows),
        len(expected),
        sum(len(e[2]) for e in expected),
    )
    assert report.observed + report.carried == sum(c >= 0 for e in expected for c in e[2])
    long = tracks.resample(GRID, f"{step}min", min_steps=3)
    assert (long.lengths >= 3).all()
    assert long.report.traces - long.report.short == len(long)


def test_rules_by_hand():
    """Ten-minute steps from midnight: fixes at 1, 9, 12, 25, 55 minutes."""
    minute = 60_000
    tracks = fixes([("a", t * minute, c) for t, c in ((1, 0), (9, 1), (12, 2), (25, 3), (55, 4))])
    at = {rule: tracks.resample(GRID, "10min", rule=rule) for rule in ("last", "first", "nearest")}
    assert at["last"][0].tolist() == [1, 2, 3, -1, -1, 4]
    assert at["first"][0].tolist() == [0, 2, 3, -1, -1, 4]
    assert at["nearest"][0].tolist() == [
        0,
        1,
        -1,
        3,
        -1,
        -1,
        4,
    ]  # 25 is half a step after 20: it belongs to 30
    even = fixes([("a", t * minute, c) for t, c in ((8, 0), (12, 1), (12, 2))])
    assert even.resample(GRID, "10min", rule="nearest")[0].tolist() == [
        0
    ]  # equally near: the earlier
    assert tracks.resample(GRID, "10min", carry="10min")[0].tolist() == [1, 2, 3, 3, -1, 4]
    assert tracks.resample(GRID, "10min", carry="9min")[0].tolist() == [1, 2, 3, -1, -1, 4]
    split = tracks.resample(GRID, "10min", max_gap="29min")
    assert [t.tolist() for t in split] == [[1, 2, 3], [4]]
    assert split.start.astype(str).tolist() == [
        "2020-01-01T00:00:00.000",
        "2020-01-01T00:50:00.000",
    ]
    assert [t.tolist() for t in tracks.resample(GRID, "10min", max_gap="30min")] == [
        [1, 2, 3, -1, -1, 4]
    ]
    outside = fixes([("a", 0, 5), ("a", 10 * minute, (0.0, 0.0)), ("a", 30 * minute, 6)])
    assert outside.resample(GRID, "10min", carry="1h")[0].tolist() == [
        5,
        -1,
        -1,
        6,
    ]  # nothing is carried over a step off the map


def test_resampling_needs_sound_input():
    tracks = fixes([("a", 0, 1), ("a", 1, 2)])
    for wrong in (
        {"rule": "mean"},
        {"step": "5"},
        {"carry": 3},
        {"max_gap": "x"},
        {"min_steps": 0},
        {"origin": "x"},
    ):
        with pytest.raises(InvalidParameter):
            tracks.resample(GRID, **({"step": "1min"} | wrong))
    with pytest.raises(InvalidLocation, match="latitude and longitude"):
        tracks.resample(pf.Grid(2, 2), "1min")
    with pytest.raises(InvalidTable, match="split_trajectories needs a trajectory column"):
        tracks.resample(GRID, "1min", split_trajectories=True)
    for gap in (("a", None, 1), ("a", 0, None)):
        with pytest.raises(InvalidTable, match=r"leave them out with .clean\(\) first"):
            fixes([("a", 0, 1), gap]).resample(GRID, "1min")
    with pytest.raises(TooLarge, match="give max_gap"):
        fixes([("a", 0, 1), ("a", 10**12, 2)]).resample(GRID, "1s")


def test_on_points():
    """Points take the nearest location."""
    latlon = GRID.latlon([0, 7, 19])
    points = pf.Points.from_latlon(latlon[:, 0], latlon[:, 1])
    tracks = fixes([("a", 60_000 * k, c) for k, c in enumerate((1, 7, 18))])
    assert tracks.resample(points, "1min")[0].tolist() == [0, 1, 2]


# Traces


def some_traces():
    rows = [("a", 60_000 * k, k % 20) for k in range(7)] + [("b", 60_000 * k, 3) for k in (2, 4)]
    return fixes(rows).resample(GRID, "1min")


def test_traces_as_sequence_and_array():
    traces = some_traces()
    assert len(traces) == 2
    assert [t.tolist() for t in traces] == [[0, 1, 2, 3, 4, 5, 6], [3, -1, 3]]
    assert traces[-1].tolist() == [3, -1, 3]
    assert np.asarray(traces).tolist() == [[0, 1, 2, 3, 4, 5, 6], [3, -1, 3, -1, -1, -1, -1]]
    assert traces[[1, 0]].user.values().tolist() == ["b", "a"]
    assert traces[traces.lengths > 3].users[traces.user.codes[0]] == "a"
    assert traces.times()[-1] == np.datetime64("2020-01-01T00:04")
    with pytest.raises(IndexError):
        traces[2]
    assert repr(traces) == "Traces(2 rows of 2 users, 10 steps of 1min, 90% observed)"
    assert (
        "9 fixes to 2 traces of 10 steps in all: 9 observed, 0 carried forward, 1 missing (0 of "
        "them off the map)" in str(traces.report)
    )
    assert traces.report.to_dict()["steps"] == 10


def test_cutting_rows():
    traces = some_traces()
    cut = traces.cut(3)
    assert [t.tolist() for t in cut] == [[0, 1, 2], [3, 4, 5], [3, -1, 3]]
    assert cut.user.values().tolist() == ["a", "a", "b"]
    assert cut.start.astype("datetime64[m]").astype(str).tolist() == [
        "2020-01-01T00:00",
        "2020-01-01T00:03",
        "2020-01-01T00:02",
    ]
    assert [t.tolist() for t in traces.cut(3, observed=0.9)] == [[0, 1, 2], [3, 4, 5]]
    assert [len(t) for t in traces.at_least(4)] == [7]
    assert [len(t) for t in traces.at_least(1, observed=0.7)] == [7]
    with pytest.raises(InvalidParameter):
        traces.cut(0)


def test_back_to_a_table():
    """Released cells get their users and times back, from the flat and from the padded form."""
    traces = some_traces()
    for cells in (None, traces.cells, traces.to_array()):
        back = traces.to_tracks(cells)
        assert len(back) == 9
        assert GRID.locate(back.lat, back.lon).tolist() == [0, 1, 2, 3, 4, 5, 6, 3, 3]
        assert back.user.values().tolist() == ["a"] * 7 + ["b"] * 2
        assert [t.tolist() for t in back.resample(GRID, "1min")] == [t.tolist() for t in traces]
    for wrong in (np.zeros((2, 3), int), np.zeros(4, int)):
        with pytest.raises(InvalidTable, match="cells must"):
            traces.to_tracks(wrong)


def test_periods_of_the_day():
    hour = 3_600_000
    traces = fixes([("a", k * hour, 1) for k in range(24)] + [("b", 5 * hour, 1)]).resample(
        GRID, "1h"
    )
    first, second = traces.periods(2)
    assert first.tolist() == [0] * 12 + [1] * 12
    assert second.tolist() == [0]
    assert traces.periods(2, ahead="8h")[0].tolist() == [0] * 4 + [1] * 12 + [0] * 8
    model = pf.MobilityModel.fit(GRID, traces, periods=2, period_of_step=traces.periods(2))
    assert model.periods == 2


def test_from_fixes_to_release():
    """The forms that fit and run take, and counts of moves as written."""
    traces = some_traces()
    model = pf.MobilityModel.fit(GRID, traces, unseen="neighbours8")
    assert model.matrix()[0, 1] == 1.0
    released = (
        pf.TraceReleaser(pf.blocks(GRID, 2), model, epsilon=1.0, rng=1)
        .run(traces, "point")
        .released
    )
    assert ((released >= 0) == (traces.to_array() >= 0)).all()
    assert len(traces.to_tracks(released)) == 9


# Real data


@real
@large
def test_real_geolife_from_parquet_to_model():
    """All of it: what is left out adds up, moves are those that plain NumPy counts, and there
    are 20 users x 100 steps."""
    pytest.importorskip("pyarrow")
    grid = pf.Grid.from_bounds(
        lat=(39.831741, 39.988695), lon=(116.273804, 116.467438), cell_km=0.34
    )
    tracks = pf.read_table(DATA / "geolife_beijing.parquet", columns={"trajectory": None})
    assert len(tracks) == 8_638_560
    clean = tracks.clean(grid, window=("2007-04-01", "2012-09-01"))
    assert clean.report.rows == 8_638_560 == len(clean) + sum(s.dropped for s in clean.report.steps)
    traces = clean.resample(grid, "5min", max_gap="1h")
    model = pf.MobilityModel.fit(grid, traces)

    user, step = clean.user.codes.astype(np.int64), clean.ms // 300_000
    last = np.append((np.diff(user) != 0) | (np.diff(step) != 0), True)
    user, step, when = user[last], step[last], clean.ms[last]
    first = clean.ms[
        np.append(0, np.flatnonzero(last)[:-1] + 1)
    ]  # of the next step: a silence of over an hour cuts
    cell = grid.locate(clean.lat[last], clean.lon[last])
    move = (np.diff(user) == 0) & (np.diff(step) == 1) & (first[1:] - when[:-1] <= 3_600_000)
    counts = np.zeros((grid.size, grid.size))
    np.add.at(counts, (cell[:-1][move], cell[1:][move]), 1)
    rows = counts.sum(axis=1)
    seen = rows > 0
    assert np.allclose(
        model.matrix().toarray()[seen], counts[seen] / rows[seen, None], rtol=1e-12, atol=0
    )

    test_users = clean.resample(grid, "1min", max_gap="10min").cut(100, observed=0.9)
    assert len(np.unique(test_users.user.codes)) >= 20

"""Grids and points: numbering, projection, nearest location, and what is refused."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

import naive
import pglp_fast as pf
from cases import large
from pglp_fast.space.projection import KM_PER_DEGREE, Equirectangular

BEIJING = {
    "lat": (39.831741, 39.988695),
    "lon": (116.273804, 116.467438),
    "cell_km": 0.34,
}  # the paper's first box
GRIDS = {
    "square": pf.Grid(5, 7, cell_km=0.5, origin=(35.68, 139.6)),
    "anisotropic": pf.Grid(6, 4, cell_km=(0.3, 1.7), origin=(35.68, 139.6)),
    "south-west": pf.Grid(9, 3, cell_km=0.34, origin=(-33.5, -70.7)),
    "one cell": pf.Grid(1, 1, cell_km=2, origin=(0.0, 0.0)),
    "paper": pf.Grid.from_bounds(**BEIJING),
    "paper, anisotropic": pf.Grid.from_bounds(**(BEIJING | {"cell_km": (0.34, 0.5)})),
}
grids = pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS.keys())


# Grid


def test_numbering():
    g = pf.Grid(2, 3, cell_km=(0.5, 0.25))
    assert (g.size, g.rows, g.cols, g.scale) == (6, 2, 3, (0.5, 0.25))
    assert g.xy(range(6)).tolist() == [[0, 0], [0.5, 0], [1, 0], [0, 0.25], [0.5, 0.25], [1, 0.25]]
    assert g.lattice.tolist() == [[0, 0], [1, 0], [2, 0], [0, 1], [1, 1], [2, 1]]
    assert g.stretch == 0.25
    assert g.distance([0, 0], [4, 5]) == pytest.approx(
        [math.hypot(0.5, 0.25), math.hypot(1, 0.25)], rel=1e-15
    )
    assert repr(g) == "Grid(2, 3, cell_km=(0.5, 0.25))"


@grids
def test_locate_inverts_latlon(grid):
    """Would catch rows counted from the north, swapped axes or scales, and a corner taken for a
    middle."""
    cells = np.arange(grid.size)
    latlon = grid.latlon(cells)
    assert np.array_equal(grid.locate(latlon[:, 0], latlon[:, 1]), cells)
    lat = latlon[:, 0].reshape(grid.rows, grid.cols)
    assert (np.diff(lat, axis=0) > 0).all(), "row 0 is the southernmost"
    assert (np.diff(latlon[:, 1].reshape(grid.rows, grid.cols), axis=1) > 0).all()


@grids
def test_latlon_is_equirectangular_at_the_middle_latitude(grid):
    """Would catch another Earth radius, or the projection taken at the box's edge: both shift
    far cells by metres."""
    p = grid.projection
    radius, cos = 6371.0088, math.cos(math.radians(p.mid_lat))
    for cell in (0, grid.size // 2, grid.size - 1):
        row, col = divmod(cell, grid.cols)
        x, y = (col + 0.5) * grid.scale[0], (row + 0.5) * grid.scale[1]
        expected = [p.lat0 + math.degrees(y / radius), p.lon0 + math.degrees(x / radius / cos)]
        assert grid.latlon(cell) == pytest.approx(expected, rel=1e-14, abs=1e-14)


def test_middle_latitude_of_an_origin():
    g = pf.Grid(10, 2, cell_km=(1.0, 3.0), origin=(50.0, 4.0))
    assert g.projection.mid_lat == pytest.approx(50.0 + math.degrees(15.0 / 6371.0088), abs=1e-12)


def test_from_bounds_of_the_paper():
    g = pf.Grid.from_bounds(**BEIJING)
    (south, north), (west, east) = BEIJING["lat"], BEIJING["lon"]
    height = math.radians(north - south) * 6371.0088
    width = math.radians(east - west) * 6371.0088 * math.cos(math.radians((south + north) / 2))
    assert (g.rows, g.cols) == (math.ceil(height / 0.34), math.ceil(width / 0.34)) == (52, 49)
    assert g.projection.mid_lat == (south + north) / 2
    assert g.locate(south, west) == 0
    assert g.locate(north, east) == g.size - 1
    assert g.locate(south, east) == g.cols - 1


@pytest.mark.parametrize("n", [1, 3, 10, 48])
def test_from_bounds_of_whole_cells(n):
    """A box exactly n cells wide has n columns: the last bit of a quotient must not add one."""
    side = 0.1
    lat = (10.0, 10.0 + n * side / KM_PER_DEGREE)
    east = n * side / (KM_PER_DEGREE * math.cos(math.radians(sum(lat) / 2)))
    g = pf.Grid.from_bounds(lat=lat, lon=(0.0, east), cell_km=side)
    assert (g.rows, g.cols) == (n, n)


@grids
def test_locate_at_the_border(grid):
    """A cell holds its south and west side, not its north and east; -1 outside; NaN and inf are
    outside."""
    p = grid.projection
    north, east = p.to_latlon(np.array([grid.cols * grid.scale[0], grid.rows * grid.scale[1]]))
    d = 1e-9
    inside = {
        (p.lat0, p.lon0): 0,
        (north - d, east - d): grid.size - 1,
        (p.lat0, east - d): grid.cols - 1,
    }
    for (lat, lon), cell in inside.items():
        assert grid.locate(lat, lon) == cell
    outside = [
        (p.lat0 - d, p.lon0),
        (p.lat0, p.lon0 - d),
        (north + d, p.lon0),
        (p.lat0, east + d),
        (-80.0, 0.0),
    ]
    outside += [(np.nan, p.lon0), (p.lat0, np.nan), (np.inf, p.lon0), (p.lat0, -np.inf)]
    lat, lon = np.array(outside).T
    assert grid.locate(lat, lon).tolist() == [-1] * len(outside)


def test_one_many_or_none():
    g = GRIDS["square"]
    lat, lon = g.latlon(9)
    for value, shape in (
        (g.locate(lat, lon), ()),
        (g.locate([lat], lon), (1,)),
        (g.locate([], []), (0,)),
    ):
        assert value.shape == shape
        assert value.dtype == np.int32
    assert g.locate(lat, [lon, lon, 0.0]).tolist() == [9, 9, -1]
    for read in (g.xy, g.latlon):
        assert [read(c).shape for c in (3, [3], range(4), [], np.array([], np.int16))] == [
            (2,),
            (1, 2),
            (4, 2),
            (0, 2),
            (0, 2),
        ]
    assert g.nearest([]).shape == (0,)
    assert g.nearest([0.0, 0.0]).tolist() == [0]
    assert g.distance(0, 1) == 0.5


steps = st.integers(-6, 40)  # quarters of a cell, some outside the map


@given(
    st.sampled_from([(1.0, 1.0), (0.5, 0.25), (0.125, 2.0)]),
    st.lists(st.tuples(steps, steps), min_size=1, max_size=20),
)
def test_grid_nearest(scale, quarters):
    """Points on quarters of a cell, exact in binary: would catch a tie that goes to the higher
    index (rint, floor(x + .5))."""
    g = pf.Grid(5, 7, cell_km=scale)
    xy = np.array(quarters) / 4 * scale
    assert g.nearest(xy).tolist() == [naive.nearest(g.lattice, scale, range(g.size), p) for p in xy]


# Points


def test_quantisation():
    P = pf.Points([[10.00049, -3.0], [10.0026, -2.9984]])
    assert P.lattice.dtype == np.int32
    assert P.lattice.tolist() == [[0, 0], [2, 2]]
    assert P.xy.tolist() == pytest.approx(np.array([[10.00049, -3.0], [10.00249, -2.998]]))
    assert (P.size, P.scale, P.stretch) == (2, (0.001, 0.001), 1.0)


@given(
    st.lists(st.tuples(*[st.floats(-1e3, 1e3)] * 2), min_size=1, max_size=8),
    st.sampled_from([0.001, 0.25, 7.0]),
)
def test_quantisation_moves_no_point_by_more_than_half_a_step(points, step):
    sites = np.rint((np.array(points) - np.min(points, axis=0)) / step)
    if len(np.unique(sites, axis=0)) < len(points):
        with pytest.raises(pf.InvalidLocation, match=r"lattice site|are the same place"):
            pf.Points(points, resolution_km=step)
        return
    P = pf.Points(points, resolution_km=step)
    assert np.abs(np.asarray(P.xy) - points).max() <= step * (0.5 + 1e-6)
    assert P.nearest(P.xy).tolist() == list(range(P.size))


def test_xy_is_an_array_and_a_function():
    P = pf.Points([[0, 0], [3, 1], [5, 2]], resolution_km=1.0)
    assert P.xy.shape == (3, 2)
    assert np.asarray(P.xy).tolist() == P.xy(range(3)).tolist() == [[0, 0], [3, 1], [5, 2]]
    assert P.xy(1).tolist() == P.xy[1].tolist() == [3, 1]
    assert P.xy([]).shape == (0, 2)
    with pytest.raises(pf.InvalidLocation, match=r"cells\[1\] = 3 is not one of the 3 locations"):
        P.xy([0, 3])


def test_twins_are_merged_on_request():
    xy = [(0, 0), (1, 1), (5, 5), (1.0004, 1), (0, 0.0003), (2, 2)]
    merged = pf.Points(xy, twins="merge")
    assert merged.location_of.tolist() == [0, 1, 2, 1, 0, 3]
    assert np.allclose(merged.xy, [(0, 0), (1, 1), (5, 5), (2, 2)])
    assert pf.Points([(0, 0), (1, 1)]).location_of.tolist() == [0, 1]
    near = pf.Points.from_latlon([35.6, 35.6, 35.7], [139.6, 139.6, 139.6], twins="merge")
    assert near.location_of.tolist() == [0, 0, 1]
    with pytest.raises(pf.InvalidParameter, match="twins must be one of"):
        pf.Points(xy, twins="drop")


def test_points_are_located_by_latitude_and_longitude():
    rng = np.random.default_rng(4)
    lat, lon = 35.6 + rng.random(40) * 0.1, 139.6 + rng.random(40) * 0.1
    p = pf.Points.from_latlon(lat, lon)
    assert p.locate(lat, lon).tolist() == list(range(40))
    ask = np.stack([35.58 + rng.random((3, 5)) * 0.14, 139.58 + rng.random((3, 5)) * 0.14])
    away = p.projection.to_km(ask[0], ask[1])[..., None, :] - np.asarray(p.xy)
    distance = np.hypot(away[..., 0], away[..., 1])
    found = p.locate(*ask)
    assert found.dtype == np.int32 and (found == distance.argmin(axis=-1)).all()
    limited = p.locate(*ask, within_km=0.8)
    assert (limited == np.where(distance.min(axis=-1) <= 0.8, found, -1)).all()
    assert (limited == -1).any() and (limited >= 0).any()
    assert p.locate(np.nan, 139.6) == -1
    assert p.locate([np.inf, 35.6], 139.6)[0] == -1
    assert p.locate([], []).shape == (0,)
    with pytest.raises(pf.InvalidParameter, match="within_km"):
        p.locate(35.6, 139.6, within_km=-1)
    with pytest.raises(pf.InvalidLocation, match="no latitude and longitude"):
        pf.Points([(0, 0)]).locate(35.6, 139.6)


def test_centres_of_a_tessellation():
    """Hexagon centres as H3 gives them, in degrees: a release stays on them, and neighbours are
    those within a side and a bit."""
    row, col = np.divmod(np.arange(30), 6)
    lat, lon = 35.6 + 0.0026 * row, 139.6 + 0.0037 * (col + row % 2 / 2)
    p = pf.Points.from_latlon(lat, lon)
    near = np.hypot(*(np.asarray(p.xy)[:, None] - np.asarray(p.xy)).transpose(2, 0, 1)) < 0.36
    G = pf.PolicyGraph.from_edges(p, np.argwhere(np.triu(near, 1)))
    assert len(G.neighbours(8)) == 6 and pf.certify(pf.PPIM(G, epsilon=1.0)).ok
    cells = p.locate(lat + 0.0005, lon)
    out = pf.PPIM(G, epsilon=1.0).release(cells, rng=1)
    assert cells.tolist() == list(range(30)) and set(out) <= set(range(30))


def test_twins_are_named():
    points = [[0, 0], [1, 1], [2, 2], [1.0004, 0.9996]]
    with pytest.raises(
        pf.InvalidLocation,
        match=r"points 1 and 3 .*1\.0004.* fall on one lattice site.*finer resolution_km",
    ):
        pf.Points(points)
    assert pf.Points(points, resolution_km=1e-4).size == 4


def test_span():
    step = 2.0**-10
    edge = pf.Points([[0, 0], [2**29 * step, 0]], resolution_km=step)
    assert edge.lattice[:, 0].tolist() == [0, 2**29]
    with pytest.raises(pf.InvalidLocation, match=r"span 536870913 steps .* coarser resolution"):
        pf.Points([[0, 0], [0, (2**29 + 1) * step]], resolution_km=step)
    with pytest.raises(pf.InvalidLocation, match="further out than"):
        pf.Points([[-1e308, 0], [1e308, 0]])


def test_from_latlon():
    lat, lon = np.random.default_rng(1).uniform((48.8, 2.2), (48.9, 2.4), (30, 2)).T
    P = pf.Points.from_latlon(lat, lon)
    assert P.projection.mid_lat == pytest.approx((lat.min() + lat.max()) / 2, abs=1e-12)
    cos = math.cos(math.radians(P.projection.mid_lat))
    off_km = (P.latlon(range(30)) - np.stack([lat, lon], 1)) * KM_PER_DEGREE * (1, cos)
    assert np.abs(off_km).max() <= 0.0005 + 1e-9  # half a metre
    x, y = P.xy[3] - P.xy[7]
    assert [x, y] == pytest.approx(
        [(lon[3] - lon[7]) * KM_PER_DEGREE * cos, (lat[3] - lat[7]) * KM_PER_DEGREE], abs=0.001
    )


@given(st.integers(0, 2**32 - 1), st.integers(1, 81))
def test_points_nearest(seed, n):
    """Part of a 9 x 9 lattice in random index order, queries on half steps: most have ties, often
    in far branches of the tree.

    Would catch a pruned branch that holds the tied lower index, and a tree that visits in its own
    order."""
    rng = np.random.default_rng(seed)
    step, corner = 0.25, np.array([-3.0, 7.5])
    sites = rng.permutation(np.stack(np.divmod(np.arange(81), 9), 1))[:n]
    P = pf.Points(sites * step + corner, resolution_km=step)
    halves = rng.integers(-3, 20, (12, 2)) * step / 2
    expected = [
        naive.nearest(P.lattice, P.scale, range(n), p - sites.min(axis=0) * step) for p in halves
    ]
    assert P.nearest(halves + corner).tolist() == expected


@large
def test_points_nearest_in_a_deep_tree():
    rng = np.random.default_rng(2)
    sites = rng.permutation(np.stack(np.divmod(np.arange(100 * 100), 100), 1))[:5000]
    P = pf.Points(sites, resolution_km=1.0)
    xy = rng.integers(-20, 240, (300, 2)) / 2
    d = ((P.lattice[None] - (xy - sites.min(axis=0))[:, None]) ** 2).sum(axis=2)
    assert np.array_equal(P.nearest(xy), d.argmin(axis=1))  # exact halves; argmin takes the first


# Errors: cause, place and remedy

grid, points = GRIDS["square"], pf.Points([[0, 0], [1, 1]])
no_origin = pf.Grid(2, 3)


@pytest.mark.parametrize(
    ("call", "kind", "match"),
    [
        (lambda: pf.Grid(0, 3), pf.InvalidParameter, "rows must be an integer at least 1, got 0"),
        (lambda: pf.Grid(2, 1.5), pf.InvalidParameter, "cols must be an integer, got 1.5"),
        (lambda: pf.Grid(True, 3), pf.InvalidParameter, "rows must be an integer"),
        (lambda: pf.Grid(2**16, 2**16), pf.InvalidLocation, "65536 x 65536 cells are too many"),
        (lambda: pf.Grid(1, 2**29 + 1), pf.InvalidLocation, "536870912 a side"),
        (
            lambda: pf.Grid(2, 3, cell_km=0),
            pf.InvalidParameter,
            "cell_km must be a finite number above 0, got 0",
        ),
        (
            lambda: pf.Grid(2, 3, cell_km=(1, -1)),
            pf.InvalidParameter,
            "cell_km must be a finite number above 0, got -1",
        ),
        (lambda: pf.Grid(2, 3, cell_km=(1, 2, 3)), pf.InvalidParameter, "cell_km must be a number"),
        (
            lambda: pf.Grid(2, 3, cell_km=np.nan),
            pf.InvalidParameter,
            "cell_km must be a finite number",
        ),
        (lambda: pf.Grid(2, 3, cell_km="0.5"), pf.InvalidParameter, "cell_km must be a number"),
        (lambda: pf.Grid(2, 3, origin=(91, 0)), pf.InvalidLocation, "latitude 91.0 is not in"),
        (lambda: pf.Grid(2, 3, origin=(0, 181)), pf.InvalidLocation, "longitude 181.0 is not in"),
        (lambda: pf.Grid(2, 3, origin=(np.nan, 0)), pf.InvalidLocation, "latitude nan"),
        (lambda: pf.Grid(2, 3, origin=(1, 2, 3)), pf.InvalidLocation, "origin"),
        (lambda: pf.Grid(2, 3, origin=5), pf.InvalidLocation, "origin"),
        (
            lambda: pf.Grid.from_bounds(lat=(2, 1), lon=(0, 1), cell_km=1),
            pf.InvalidLocation,
            "bounds must ascend",
        ),
        (
            lambda: pf.Grid.from_bounds(lat=(1, 2), lon=(0, np.nan), cell_km=1),
            pf.InvalidLocation,
            "bounds must ascend",
        ),
        (
            lambda: pf.Grid.from_bounds(lat=(1, 95), lon=(0, 1), cell_km=1),
            pf.InvalidLocation,
            "latitude 95.0",
        ),
        (lambda: pf.Grid.from_bounds(lat=(1,), lon=(0, 1), cell_km=1), pf.InvalidLocation, "lat"),
        (
            lambda: no_origin.locate(1, 2),
            pf.InvalidLocation,
            r"no latitude and longitude: build it with origin=\(lat, lon\)",
        ),
        (lambda: no_origin.latlon(0), pf.InvalidLocation, "no latitude and longitude"),
        (lambda: points.latlon(0), pf.InvalidLocation, "no latitude and longitude.*from_latlon"),
        (lambda: grid.locate([1, 2], [1, 2, 3]), pf.InvalidLocation, "lat.* lon"),
        (lambda: grid.locate("north", 3), pf.InvalidLocation, "lat"),
        (
            lambda: grid.xy([3, 35]),
            pf.InvalidLocation,
            r"cells\[1\] = 35 is not one of the 35 locations 0\.\.34",
        ),
        (
            lambda: grid.xy([3, -1]),
            pf.InvalidLocation,
            r"cells\[1\] = -1 is not one of the 35 locations",
        ),
        (
            lambda: grid.xy(np.uint64(2**63)),
            pf.InvalidLocation,
            "9223372036854775808 is not one of",
        ),
        (lambda: grid.xy(1.0), pf.InvalidLocation, "cells must be integers, got dtype float64"),
        (lambda: grid.xy(["a"]), pf.InvalidLocation, "cells must be integers"),
        (
            lambda: grid.latlon([[0, 1]]),
            pf.InvalidLocation,
            r"1-d array, got shape \(1, 2\): pass cells.ravel\(\)",
        ),
        (lambda: grid.distance([0], [99]), pf.InvalidLocation, r"b\[0\] = 99 is not one of"),
        (
            lambda: grid.distance([0, 1], [0, 1, 2]),
            pf.InvalidLocation,
            "a and b must be equally long, got 2 and 3",
        ),
        (
            lambda: grid.nearest([[0, 0], [np.nan, 0]]),
            pf.InvalidLocation,
            r"xy_km\[1\] = \[nan, 0.0\] is not finite",
        ),
        (
            lambda: points.nearest([[1, 2, 3]]),
            pf.InvalidLocation,
            r"xy_km must have shape \(n, 2\), got \(1, 3\)",
        ),
        (
            lambda: points.nearest("here"),
            pf.InvalidLocation,
            "xy_km must be real numbers",
        ),
        (lambda: pf.Points([]), pf.InvalidLocation, "xy_km is empty"),
        (
            lambda: pf.Points([[0, np.inf]]),
            pf.InvalidLocation,
            r"xy_km\[0\] = \[0.0, inf\] is not finite",
        ),
        (
            lambda: pf.Points([[0, 0]], resolution_km=0),
            pf.InvalidParameter,
            "resolution_km must be a finite number above 0",
        ),
        (
            lambda: pf.Points.from_latlon([1, 2], [1]),
            pf.InvalidLocation,
            "equally long and not empty, got 2 and 1",
        ),
        (lambda: pf.Points.from_latlon([], []), pf.InvalidLocation, "not empty"),
        (lambda: pf.Points.from_latlon([np.nan, 1], [1, 2]), pf.InvalidLocation, "latitude nan"),
        (
            lambda: Equirectangular(0.0, 0.0, 90.0),
            pf.InvalidLocation,
            "latitude 90.0 is not in -89.9..89.9",
        ),
    ],
)
def test_refused(call, kind, match):
    with pytest.raises(kind, match=match) as caught:
        call()
    assert isinstance(caught.value, pf.PGLPError)
    assert isinstance(caught.value, ValueError)


# -- ranges: lengths and coordinates whose products are right in float64


@pytest.mark.parametrize("km", [1e-160, 9e-7, 1.1e6, 1e154])
def test_lengths_beyond_the_range_are_refused(km):
    """At 1e-160 and 1e154 km squares underflow and overflow: gauges and repairs were wrong."""
    for make in (
        lambda: pf.Grid(3, 3, cell_km=km),
        lambda: pf.Grid(3, 3, cell_km=(1.0, km)),
        lambda: pf.Points([[0.0, 0.0]], resolution_km=km),
    ):
        with pytest.raises(pf.InvalidParameter, match=r"in 1e-06\.\.1e\+06"):
            make()


@pytest.mark.parametrize("km", [1e-6, 1e6])
def test_at_the_ends_of_the_range_all_is_as_it_is_in_the_middle(km):
    def answers(scale):
        g = pf.Grid(4, 5, cell_km=scale)
        G, C = pf.blocks(g, 2), pf.Domain(g, [0, 3, 7, 9, 16, 19])
        gauge = pf.sensitivity_hull(G).gauge(np.array([[0.3, 0.7], [2.0, -1.0]]) * scale)
        repairs = [
            pf.repair(G, C, strategy=s, calibration=c).added.tolist()
            for s in ("min-area", "nearest", "min-error")
            for c in ("component", "graph")
        ]
        return repairs, gauge, pf.PPIM(G, epsilon=1.0).matrix(0)[1]

    found, wanted = answers(km), answers(1.0)
    assert found[0] == wanted[0]
    assert np.allclose(found[1], wanted[1], rtol=1e-12)
    assert np.allclose(found[2], wanted[2], rtol=1e-12)


def test_coordinates_beyond_the_range_are_refused():
    with pytest.raises(pf.InvalidLocation, match="further out than"):
        pf.Points([[0.0, 2e15]])
    with pytest.raises(pf.InvalidLocation, match=r"2\^43 steps"):
        pf.Points([[1e11, 0.0], [1e11 + 0.001, 0.0]])  # float64 cannot tell these apart
    with pytest.raises(pf.InvalidLocation, match="further out than"):
        pf.Points([[0.0, 0.0], [1.0, 0.0]]).nearest([[1e300, 0.0]])
    with pytest.raises(pf.InvalidLocation, match="latitude 95"):
        pf.Points.from_latlon([-80.0, 95.0], [0.0, 0.0])


CELL = {"rows": 1, "cols": 1, "cell_km": [1, 1]}


@pytest.mark.parametrize(
    "facts",
    [
        None, 3, [], {}, "grid", {"rows": 1}, CELL, CELL | {"cell_km": 1, "projection": None},
        CELL | {"projection": [1, 2]}, CELL | {"projection": "abc"}, CELL | {"projection": 1},
    ],
)  # fmt: skip
def test_facts_that_tell_of_no_grid(facts):
    with pytest.raises(pf.InvalidLocation):
        pf.Grid.from_dict(facts)


def test_a_box_across_180_degrees():
    """Fiji: the same map as one that lies elsewhere, cell by cell."""
    across = pf.Grid.from_bounds(lat=(-18, -17), lon=(179.5, -179.25), cell_km=2)
    plain = pf.Grid.from_bounds(lat=(-18, -17), lon=(9.5, 10.75), cell_km=2)
    assert (across.rows, across.cols) == (plain.rows, plain.cols)
    cells = np.arange(across.size)
    there, here = across.latlon(cells), plain.latlon(cells)
    assert (np.abs(there[:, 1]) <= 180).all() and (there[:, 1] < 0).any()
    assert np.allclose((there[:, 1] - here[:, 1]) % 360, 170)
    assert (across.locate(*there.T) == cells).all()
    assert across.locate(-17.5, [179.4, -179.2, 0.0, np.nan]).tolist() == [-1] * 4
    assert across.locate(-17.5, 180.0) == across.locate(-17.5, -180.0) >= 0
    assert pf.Grid.from_dict(across.to_dict()).locate(-17.5, -179.5) >= 0


def test_points_across_180_degrees():
    """Near each other, as they are on Earth; found from either way of writing a longitude."""
    lat, lon = [-17.0, -17.1, -16.9], [179.9, -179.9, 179.95]
    p = pf.Points.from_latlon(lat, lon)
    assert np.allclose(p.latlon([0, 1, 2]), np.stack([lat, lon], axis=1), atol=1e-5)
    assert p.distance(0, 1) < 25
    assert p.locate(lat, lon).tolist() == p.locate(lat, [-180.1, 180.1, 179.95]).tolist()
    assert p.locate(lat, lon).tolist() == [0, 1, 2] and p.locate(np.nan, 1.0) == -1
    wide = pf.Points.from_latlon([0.0, 1.0], [-80.0, 101.0], resolution_km=1.0)
    assert wide.projection.lon0 == 101.0  # 179 degrees that way round, 181 the other
    plain = pf.Points.from_latlon([0.0, 1.0], [-80.0, 80.0], resolution_km=1.0)
    assert plain.projection.lon0 == -80.0


@pytest.mark.parametrize("lon", [(-180, 180), (-10, 10), (170, 180), (179, -178), (-180, -170)])
def test_longitudes_are_equal_modulo_360(lon):
    """Would catch users who count from 0 to 360, and are off the map without a word."""
    grid = pf.Grid.from_bounds(lat=(-10, 10), lon=lon, cell_km=50.0)
    at = grid.latlon(np.arange(grid.size))
    assert np.array_equal(grid.locate(at[:, 0], at[:, 1]), np.arange(grid.size))
    assert np.array_equal(grid.locate(at[:, 0], at[:, 1] % 360), np.arange(grid.size))
    turned = np.where(at[:, 1] > 0, at[:, 1] - 360, at[:, 1] + 360)
    assert np.array_equal(grid.locate(at[:, 0], turned), np.arange(grid.size))
    none = [np.nan, np.inf, -np.inf, 361.0, 999.0, -400.0]
    assert (grid.locate(np.zeros(6), none) == -1).all()
    wide = lon == (-180, 180)
    assert (grid.locate([0.0, 0.0], [lon[1] + 1.0, lon[0] - 1.0]) >= 0).all() == wide


def test_tables_from_0_to_360_degrees():
    """Cleaning keeps them; they are where they are."""
    grid = pf.Grid.from_bounds(lat=(40, 41), lon=(-75, -73), cell_km=5.0)
    times = np.array(["2026-01-05"] * 4, "datetime64[ms]")
    tracks = pf.Tracks.of([1, 2, 3, 4], times, [40.5] * 4, [286.0, -74.0, 361.0, -361.0])
    cleaned = tracks.clean(grid)
    assert cleaned.users[cleaned.user.codes].tolist() == [1, 2]
    cells = grid.locate(cleaned.lat, cleaned.lon)
    assert cells[0] == cells[1] >= 0

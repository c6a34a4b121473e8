"""Hostile input, everywhere: a right answer or a PGLPError, never another exception, a crash or a
warning.

Each public call below is made with one or two arguments replaced by what no caller should give:
NaN, integers of 5,000 digits, masked, complex, ragged, strided, read-only or big-endian arrays,
damaged sparse matrices, objects of another kind. ``HYPOTHESIS_PROFILE=thorough`` tries many more.
"""

import atexit
import contextlib
import os
import shutil
import tempfile
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sparse
from hypothesis import given, settings, strategies as st
from scipy import sparse as sp

import pglp_fast as pf

CHOSEN = os.environ.get("HYPOTHESIS_PROFILE")
FOLDER = Path(tempfile.mkdtemp(prefix="pglp_hostile"))
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
N = 12
G = pf.Grid(3, 4, cell_km=0.5, origin=(35.0, 139.0))
P = pf.Points([[0.0, 0.0], [0.3, 0.1], [1.0, 2.0], [0.7, 0.2], [0.5, 0.5], [2.0, 1.0]])
POLICY = pf.blocks(G, 2)
C = pf.Domain(G, [0, 1, 2, 5, 7])
M = pf.PPIM(POLICY, epsilon=1.0)
MODEL = pf.MobilityModel.fit(G, np.arange(N)[None].repeat(2, 0), smoothing="neighbours8")
MODEL.save(FOLDER / "model.npz")
TRACES = np.array([[0, 1, 2, -1], [3, 3, 4, 5]])
WALK = sp.csr_array(np.full((N, N), 1 / N))
HULL = pf.sensitivity_hull(POLICY)
RING = np.array([[0, 1], [1, 2]])
EVEN = np.full(N, 1 / N)


# -- what a right answer looks like


def fine(_):
    return True


def a_map(x):
    return x.size >= 1 and all(1e-6 <= s <= 1e6 for s in x.scale)


def a_graph(x):
    pairs = x.edges()
    n = x.locations.size
    return bool(((pairs[:, 0] < pairs[:, 1]) & (pairs >= 0).all(1) & (pairs < n).all(1)).all())


def a_domain(x):
    return len(x) == int(x.mask().sum()) == len(x.cells())


def some_cells(x):
    x = np.asarray(x)
    return x.dtype == np.int32 and bool(((x >= 0) & (x < N)).all())


def some_cells_or_none(x):
    return bool(((np.asarray(x) >= -1) & (np.asarray(x) < N)).all())


def numbers(x):
    return not np.isnan(np.asarray(x, float)).any()


def a_row(x):
    return some_cells(x[0]) and abs(x[1].sum() - 1) < 1e-12


def a_mechanism(x):
    outputs, rows = x.matrix(int(x.groups.members[0]))
    return bool(np.abs(rows.sum(axis=1) - 1).max() < 1e-9) and len(outputs) == len(rows)


def maybe_a_mechanism(x):
    return len(x.groups.members) == 0 or a_mechanism(x)


def a_model(x):
    sums = [np.add.reduceat(c.data, c.indptr[:-1]) for c in x.chains]
    return bool(len(sums)) and all(np.abs(s - 1).max() < 1e-8 for s in sums)


def a_utility(x):
    return np.isfinite(x.e_eu) and 0 <= x.e_eu <= x.largest + 1e-9


def a_privacy(x):
    return np.isfinite([x.error, x.entropy]).all() and x.error >= 0 and x.entropy >= -1e-9


def a_repair(x):
    return a_graph(x.graph) and bool(x.graph.has_edges(x.added).all())


# -- what is called: name, function, good arguments, what its answer must be

CALLS = [
    ("Grid", pf.Grid, dict(rows=3, cols=4, cell_km=1.0, origin=None), a_map),
    (
        "Grid.from_bounds",
        pf.Grid.from_bounds,
        dict(lat=(35.0, 35.1), lon=(139.0, 139.1), cell_km=1.0),
        a_map,
    ),
    ("Grid.from_dict", pf.Grid.from_dict, dict(facts=G.to_dict()), a_map),
    (
        "Grid.from_dict fields",
        lambda **facts: pf.Grid.from_dict(facts),
        G.to_dict(),
        a_map,
    ),
    ("Grid.xy", G.xy, dict(cells=[0, 1]), numbers),
    ("Grid.latlon", G.latlon, dict(cells=[0, 1]), numbers),
    ("Grid.distance", G.distance, dict(a=[0, 1], b=[2, 3]), numbers),
    ("Grid.nearest", G.nearest, dict(xy_km=[[0.1, 0.2]]), some_cells),
    ("Grid.locate", G.locate, dict(lat=[35.0], lon=[139.0]), some_cells_or_none),
    ("Points", pf.Points, dict(xy_km=P.xy, resolution_km=0.001), a_map),
    (
        "Points.from_latlon",
        pf.Points.from_latlon,
        dict(lat=[35.0, 35.1], lon=[139.0, 139.0], resolution_km=0.001),
        a_map,
    ),
    ("Points.nearest", P.nearest, dict(xy_km=[[0.1, 0.2]]), some_cells),
    ("Points.xy", lambda cells: P.xy(cells), dict(cells=[0, 1]), numbers),
    ("blocks", pf.blocks, dict(grid=G, k=2), a_graph),
    ("categories", pf.categories, dict(locations=G, labels=np.arange(N) % 2, block=3), a_graph),
    (
        "categories of points",
        pf.categories,
        dict(locations=P, labels=[0, 1, 0, 1, 0, 1], block=1.0),
        a_graph,
    ),
    ("neighbours8", pf.neighbours8, dict(grid=G), a_graph),
    ("complete", pf.complete, dict(locations=G, cells=[0, 1]), a_graph),
    ("from_edges", pf.PolicyGraph.from_edges, dict(locations=G, edges=RING), a_graph),
    (
        "from_scipy",
        pf.PolicyGraph.from_scipy,
        dict(locations=G, matrix=sp.csr_array((N, N))),
        a_graph,
    ),
    ("with_edges", POLICY.with_edges, dict(pairs=RING), a_graph),
    ("has_edges", POLICY.has_edges, dict(pairs=RING), fine),
    ("neighbours", POLICY.neighbours, dict(s=3), some_cells),
    ("component", POLICY.component, dict(s=3), some_cells),
    ("graph distance", POLICY.distance, dict(a=[0, 1], b=3), numbers),
    ("constrain", POLICY.constrain, dict(domain=C), a_graph),
    ("Domain", pf.Domain, dict(locations=G, cells=[0, 1]), a_domain),
    ("Domain.full", pf.Domain.full, dict(locations=G), a_domain),
    ("Domain.from_mask", pf.Domain.from_mask, dict(locations=G, mask=np.ones(N, bool)), a_domain),
    ("Domain.contains", C.contains, dict(cells=[0, 1]), fine),
    ("in Domain", lambda cell: cell in C, dict(cell=1), fine),
    ("Domain and", lambda other: C & other, dict(other=C), a_domain),
    ("disconnected", pf.disconnected, dict(graph=POLICY, domain=C), some_cells),
    (
        "isolated",
        pf.isolated,
        dict(graph=POLICY, domain=C, calibration="graph"),
        some_cells,
    ),
    ("isolated_many", pf.isolated_many, dict(graph=POLICY, words=C.words[None]), fine),
    (
        "repair",
        pf.repair,
        dict(graph=POLICY, domain=C, strategy="min-area", calibration="component"),
        a_repair,
    ),
    ("repair_many", pf.repair_many, dict(graph=POLICY, words=C.words[None]), fine),
    ("sensitivity_hull", pf.sensitivity_hull, dict(graph=POLICY, s=1), fine),
    ("hull.gauge", HULL.gauge, dict(xy_km=[[0.1, 0.2]]), numbers),
    ("hull.contains", HULL.contains, dict(differences=[[0, 1]]), fine),
    *(
        (
            kind.__name__,
            kind,
            dict(graph=POLICY, epsilon=1.0, domain=C, calibration="component", sampler="auto"),
            maybe_a_mechanism,
        )
        for kind in (pf.PPIM, pf.PLM, pf.PlanarLaplace, pf.KRR, pf.GraphExponential)
    ),
    (
        "Optimal",
        pf.Optimal,
        dict(graph=POLICY, epsilon=1.0, prior=EVEN, loss="squared", cache=None),
        maybe_a_mechanism,
    ),
    ("PIM", pf.PIM, dict(location_set=C, epsilon=1.0, sampler="auto"), maybe_a_mechanism),
    ("LM", pf.LM, dict(location_set=C, epsilon=1.0), maybe_a_mechanism),
    ("geo_ind", pf.geo_ind, dict(locations=G, epsilon_per_km=1.0), fine),
    (
        "Remapped",
        pf.Remapped,
        dict(mechanism=M, prior=EVEN, loss="squared"),
        maybe_a_mechanism,
    ),
    ("bound_to", M.bound_to, dict(graph=POLICY, domain=C), a_mechanism),
    ("for_components", pf.KRR.for_components, dict(locations=G, epsilon=1.0), fine),
    ("release", M.release, dict(cells=[0, 5], users=[1, 2], t=[0, 1], rng=7), some_cells),
    ("matrix", M.matrix, dict(s=1), fine),
    ("pmf", M.pmf, dict(s=1), a_row),
    ("table", M.table, dict(s=1), fine),
    ("certify", pf.certify, dict(mechanism=M), lambda c: c.ok),
    (
        "utility",
        pf.utility,
        dict(mechanism=M, prior=EVEN, region=2, categories=np.arange(N), quantiles=[0.5]),
        a_utility,
    ),
    (
        "estimate_utility",
        pf.estimate_utility,
        dict(
            locations=G,
            true=TRACES,
            released=TRACES,
            region=np.arange(N),
            categories=np.arange(N),
            quantiles=[0.5],
            level=0.9,
            clusters=[0, 1],
        ),
        a_utility,
    ),
    ("privacy", pf.privacy, dict(mechanism=M, prior=EVEN), a_privacy),
    ("compare", pf.compare, dict(mechanisms=[M], prior=EVEN), fine),
    (
        "MobilityModel",
        pf.MobilityModel,
        dict(locations=G, transitions=WALK, unseen="stay"),
        a_model,
    ),
    (
        "fit",
        pf.MobilityModel.fit,
        dict(
            locations=G,
            traces=TRACES,
            minimum_count=1,
            unseen="stay",
            smoothing="neighbours8",
            pseudo_count=1.0,
            periods=2,
            period_of_step=[0, 1, 0, 1],
        ),
        a_model,
    ),
    (
        "fit a list",
        pf.MobilityModel.fit,
        dict(locations=P, traces=[[0, 1], [2]], periods=3, period_of_step=[[0, 1], [2]]),
        a_model,
    ),
    ("forward", MODEL.forward, dict(p=EVEN, period=0), numbers),
    (
        "forward_sparse",
        MODEL.forward_sparse,
        dict(cells=[0, 1], p=[0.5, 0.5], period=0, workspace=None),
        lambda x: some_cells(x[0]),
    ),
    ("model.matrix", MODEL.matrix, dict(period=0), fine),
    ("stationary", MODEL.stationary, dict(tolerance=1e-9, steps=10), numbers),
    ("period_of", MODEL.period_of, dict(times=[0, 1]), lambda x: bool((x == 0).all())),
    ("save", MODEL.save, dict(path=FOLDER / "saved.npz", notes={"a": 1}), fine),
    ("load", pf.MobilityModel.load, dict(locations=G, path=FOLDER / "model.npz"), a_model),
    ("open", pf.MobilityModel.open, dict(path=FOLDER / "model.npz"), a_model),
    (
        "day_period",
        pf.day_period,
        dict(times=[0, 86399], periods=24),
        lambda x: bool((x >= 0).all()),
    ),
    ("set_num_threads", pf.set_num_threads, dict(n=1), fine),
]

# -- what they are called with

SCALARS = [
    None, True, np.True_, float("nan"), float("inf"), -float("inf"), 0, 1, -1, 2, 0.5, -0.5, 1e-320,
    1e-160, 1e-12, 1e12, 1e154, 1e308, 2**31, 2**63, 2**64, -(2**63), 10**400, 10**5000, "x", "",
    "graph", b"x", "\0", 1j, np.complex128(1), np.complex128(1 + 1j), Decimal("0.5"),
    Decimal("nan"), Fraction(1, 2), pd.NA, pd.NaT, np.datetime64("NaT"), np.timedelta64(3, "s"),
    np.datetime64("2020-01-01"), np.ma.masked, np.ma.array(1, mask=True), np.float32(0.5),
    np.int8(3), np.uint64(2**64 - 1), np.str_("x"), np.array(1), np.array(0.5), np.array([1]),
    np.array(None), object(), {}, {"a": 1}, set(), range(3), slice(3), [], (), [[]], [None],
    [np.nan], [10**400], [[1], [1, 2]], [[1, 2, 3]], ["a", "b"], [1, np.ma.masked], (0, 1), (1j, 0),
    [pd.NA, 1], pd.array([1, None], dtype="Int64"), pd.array([0.5, None], dtype="Float64"),
    pd.Series([0, 1]), pd.Series([0.5, np.nan]), pd.DataFrame({"a": [1, 2], "b": [3, 4]}),
    FOLDER, FOLDER / "none" / "x", "/dev/null", G, P, POLICY, C, M, MODEL, HULL, pf.Grid(3, 4),
    pf.Domain(pf.Grid(3, 4), [0]), pf.blocks(pf.Grid(3, 4), 2),
]  # fmt: skip
KINDS = [
    "i1", "i2", "i4", "i8", "u1", "u8", ">i4", ">i8", "f2", "f4", "f8", ">f8", "g", "c16", "O",
    "U3", "S2", "?", "M8[s]", "m8[s]",
]  # fmt: skip
SHAPES = [
    (), (0,), (1,), (2,), (3,), (N,), (0, 2), (3, 2), (2, 3), (N, 1), (N, N), (1, N), (0, N, N),
    (2, N, N), (2, 2, 2), (1, 1),
]  # fmt: skip
LAYOUTS = ["plain", "read-only", "strided", "reversed", "columns", "masked", "unmasked", "list"]
FILLS = [0.0, 1.0, 1 / N, -1.0, 11.0, 12.0, 1e-9, 1e9, np.nan, np.inf, 1e300]


def laid_out(array, layout):
    """The same entries, kept in memory in another way."""
    if layout == "read-only":
        array = array.copy()
        array.flags.writeable = False
    elif layout == "strided" and array.ndim:
        array = np.repeat(array, 2, axis=-1)[..., ::2]
    elif layout == "reversed" and array.ndim:
        array = array[::-1].copy()[::-1]
    elif layout == "columns":
        array = np.asfortranarray(array)
    elif layout == "masked":
        array = np.ma.array(array, mask=np.arange(array.size).reshape(array.shape) % 2 == 0)
    elif layout == "unmasked":
        array = np.ma.array(array, mask=False)
    elif layout == "list":
        return array.tolist()
    return array


def make_array(kind, shape, layout, fill, ramp):
    base = np.full(shape, fill, float)
    if ramp:
        base = np.asarray(base + np.arange(base.size).reshape(shape))
    if np.dtype(kind).kind in "iuMm":
        base = np.nan_to_num(base, nan=0, posinf=100).clip(-100, 100).astype(np.int64)
    with np.errstate(all="ignore"):
        return laid_out(np.asarray(base.astype(kind)), layout)


def make_sparse(form, fill, kind, shape):
    matrix = sp.random_array(shape, density=0.3, rng=1, format="csr")
    matrix.data[:] = fill
    matrix = matrix.astype(kind)
    if form == "damaged":
        matrix.indices[:1] = 2**30
        return matrix
    if form == "descending":
        matrix.indptr[1:2] = 10**6
        return matrix
    if form == "n-d":
        return sparse.COO.from_scipy_sparse(matrix)
    if form == "filled":
        return sparse.COO(np.zeros((2, 1), int), np.ones(1), shape=shape, fill_value=1.0)
    return matrix.asformat(form)


def hostile():
    return st.one_of(
        st.sampled_from(SCALARS),
        st.builds(
            make_array,
            st.sampled_from(KINDS),
            st.sampled_from(SHAPES),
            st.sampled_from(LAYOUTS),
            st.sampled_from(FILLS),
            st.booleans(),
        ),
        st.builds(
            make_sparse,
            st.sampled_from(
                ["csr", "csc", "coo", "dok", "lil", "damaged", "descending", "n-d", "filled"]
            ),
            st.sampled_from([1.0, 0.25, -1.0, np.nan, np.inf]),
            st.sampled_from(["f8", "f4", "c16"]),
            st.sampled_from([(N, N), (3, 3), (N, 2)]),
        ),
        st.integers(),
        st.floats(),
        st.lists(st.integers(-2, 13), max_size=5),
        st.lists(st.one_of(st.integers(-1, 12), st.floats(), st.none()), max_size=4),
    )


def attempt(name, call, arguments, right):
    """Make the call; whatever it answers must be right, whatever it raises must be ours."""
    try:
        answer = call(**arguments)
    except pf.PGLPError as error:
        assert str(error)
        return
    except OSError:
        assert "path" in arguments or "cache" in arguments, f"{name} touched a file"
        return
    assert right(answer), f"{name} answered {answer!r}"


@pytest.fixture(autouse=True)
def elsewhere():
    """A hostile path may be the name of a file, and is then written: not into the repository."""
    with contextlib.chdir(FOLDER):
        yield


@pytest.fixture(autouse=True)
def threads():
    before = pf.get_num_threads()
    yield
    pf.set_num_threads(before)


@pytest.mark.parametrize("case", CALLS, ids=lambda case: case[0])
def test_good_arguments_are_taken(case):
    """Else the next test would test nothing."""
    name, call, good, right = case
    assert right(call(**good)), name


@pytest.mark.parametrize("case", CALLS, ids=lambda case: case[0])
@settings(max_examples=settings.default.max_examples if CHOSEN else 24)
@given(data=st.data())
def test_a_right_answer_or_an_error_of_ours(case, data):
    name, call, good, right = case
    names = data.draw(st.lists(st.sampled_from(sorted(good)), min_size=1, max_size=2, unique=True))
    attempt(name, call, good | {n: data.draw(hostile(), label=n) for n in names}, right)

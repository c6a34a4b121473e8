"""Transitions as ``sparse`` arrays (period, from, to), in and out."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse
import sparse

import pglp_fast as pf
from pglp_fast.errors import InvalidTransition


def matrices(n, periods, seed=0):
    rng = np.random.default_rng(seed)
    P = rng.random((periods, n, n)) * (rng.random((periods, n, n)) < 0.5)
    P[:, np.arange(n), np.arange(n)] += 0.1
    return P / P.sum(axis=2, keepdims=True)


@pytest.mark.parametrize("periods", [1, 3])
@pytest.mark.parametrize("kind", [sparse.COO, sparse.GCXS, sparse.DOK])
def test_a_sparse_array_goes_in_and_comes_out(periods, kind):
    g = pf.Grid(2, 3)
    P = matrices(g.size, periods)
    M = pf.MobilityModel(g, kind.from_numpy(P))
    assert M.periods == periods
    for k in range(periods):
        assert (M.matrix(k).toarray() == P[k]).all()
    out = M.transitions
    assert isinstance(out, sparse.COO) and out.shape == (periods, g.size, g.size)
    assert (out.todense() == P).all() and out.nnz == np.count_nonzero(P)
    again = pf.MobilityModel(g, out)
    for mine, theirs in zip(M.chains, again.chains, strict=True):
        for a, b in zip(mine, theirs, strict=True):
            assert a.dtype == b.dtype and (a == b).all()


def test_two_dimensions_are_one_period():
    g = pf.Grid(2, 3)
    P = matrices(g.size, 1)
    for given in (P[0], scipy.sparse.csr_array(P[0]), sparse.COO.from_numpy(P[0]), P):
        M = pf.MobilityModel(g, given)
        assert M.periods == 1
        assert (M.transitions.todense() == P).all()


def test_what_is_fitted_is_a_sparse_array_too():
    """Counts of each period divided by their sums: would catch a move counted in another period."""
    g = pf.Grid(2, 2)
    M = pf.MobilityModel.fit(g, [[0, 1, 0, 2, 3, 3], [0, 3, -1, 2]], periods=2)
    ref = np.zeros((2, 4, 4))
    ref[0, 0] = [0, 1 / 3, 1 / 3, 1 / 3]  # even steps
    ref[0, 3, 3] = 1
    ref[1, 1, 0] = ref[1, 2, 3] = 1  # odd steps: 1 -> 0 and 2 -> 3
    for period, cell in ((0, 1), (0, 2), (1, 0), (1, 3)):  # never left: stay
        ref[period, cell, cell] = 1
    assert M.transitions.todense() == pytest.approx(ref)


def test_a_copy_is_given():
    g = pf.Grid(2, 2)
    M = pf.MobilityModel(g, np.eye(4))
    M.transitions.data[:] = 7
    assert (M.transitions.data == 1).all()


@pytest.mark.parametrize("kind", [sparse.COO.from_numpy, np.asarray])
def test_errors_name_the_period_and_the_row(kind):
    g = pf.Grid(1, 3)
    P = matrices(3, 3)
    P[1, 2] *= 2
    with pytest.raises(InvalidTransition, match=r"row 2 of period 1 sums to 2, not 1"):
        pf.MobilityModel(g, kind(P))
    P[1, 2] = 0
    with pytest.raises(InvalidTransition, match=r"row 2 of period 1 sums to 0.*unseen='stay'"):
        pf.MobilityModel(g, kind(P))
    M = pf.MobilityModel(g, kind(P), unseen="stay")
    assert M.transitions.todense()[1, 2].tolist() == [0, 0, 1]
    P[2, 0, 1] = -1
    with pytest.raises(InvalidTransition, match=r"entry \(0, 1\) of period 2 is -1.0"):
        pf.MobilityModel(g, kind(P))
    with pytest.raises(InvalidTransition, match=r"matrix of period 0 is 3 x 3"):
        pf.MobilityModel(pf.Grid(2, 2), kind(P))
    with pytest.raises(InvalidTransition, match=r"got 4 dimensions"):
        pf.MobilityModel(g, kind(P[None]))


def test_sparse_is_imported_only_where_it_is_used():
    program = (
        "import sys, numpy as np, pglp_fast as pf\n"
        "M = pf.MobilityModel.fit(pf.Grid(2, 2), [[0, 1, 2]])\n"
        "assert 'sparse' not in sys.modules\n"
        "M.transitions\n"
        "assert 'sparse' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


# -- numbers that are none, and numbers that are coarse


def walk(dtype):
    rng = np.random.default_rng(3)
    rows = rng.random((40, 40)).astype(dtype)
    return rows / rows.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_coarse_rows_are_judged_by_their_rounding_and_divided_by_their_sums(dtype):
    """Rows of float32 sum to 1 within 1e-7, not 1e-9: they used to be refused, or kept off."""
    rows = walk(dtype)
    exact = rows.astype(np.float64)
    exact /= exact.sum(axis=1, keepdims=True)
    forms = [rows, rows[None]]
    if dtype == np.float32:  # SciPy knows no float16
        forms.append(scipy.sparse.csr_array(rows))
    for given in forms:
        found = pf.MobilityModel(pf.Grid(5, 8), given).matrix().toarray()
        assert np.allclose(found, exact, rtol=1e-14, atol=0)
        assert np.abs(found.sum(axis=1) - 1).max() < 1e-14
    with pytest.raises(pf.InvalidTransition, match="sums to"):
        pf.MobilityModel(pf.Grid(5, 8), rows * dtype(1.05))
    with pytest.raises(pf.InvalidTransition, match="sums to"):
        pf.MobilityModel(pf.Grid(5, 8), rows.astype(np.float64) * (1 + 1e-7))


@pytest.mark.parametrize(
    "transitions",
    [
        np.zeros((0, 4, 4)),
        np.eye(4) + 0j,
        scipy.sparse.csr_array(np.eye(4) + 0j),
        sparse.COO.from_numpy(np.eye(4) + 0j),
        np.ma.array(np.eye(4), mask=np.eye(4) == 0),
        np.eye(4).astype("U3"),
        np.eye(4).astype("m8[s]"),
        sparse.COO(np.zeros((2, 1), int), np.ones(1), shape=(4, 4), fill_value=1.0),
    ],
)
def test_what_is_no_matrix_of_numbers(transitions):
    with pytest.raises(pf.InvalidTransition):
        pf.MobilityModel(pf.Grid(2, 2), transitions)


def test_a_damaged_matrix_is_not_walked_through():
    """SciPy's kernels trust indices: these used to read anywhere in memory."""
    for name, at, value in (("indices", 0, 2**30), ("indices", 1, -5), ("indptr", 1, 10**6)):
        matrix = scipy.sparse.csr_array(np.full((4, 4), 0.25))
        getattr(matrix, name)[at] = value
        with pytest.raises(pf.InvalidTransition, match="damaged"):
            pf.MobilityModel(pf.Grid(2, 2), matrix)
        with pytest.raises(pf.InvalidPolicy, match="damaged"):
            pf.PolicyGraph.from_scipy(pf.Grid(2, 2), matrix)


@pytest.mark.parametrize("pseudo_count", [1e308, 5e-324, 1e-13, np.inf])
def test_a_pseudo_count_that_drowns_everything_is_refused(pseudo_count):
    with pytest.raises(pf.InvalidParameter, match="pseudo_count"):
        pf.MobilityModel.fit(
            pf.Grid(2, 2), [[0, 1]], smoothing="neighbours8", pseudo_count=pseudo_count
        )


@pytest.mark.parametrize("pseudo_count", [1e-12, 1e12])
def test_pseudo_counts_at_the_ends_give_distributions(pseudo_count):
    model = pf.MobilityModel.fit(
        pf.Grid(2, 2), [[0, 1]], smoothing="neighbours8", pseudo_count=pseudo_count
    )
    assert np.abs(model.matrix().sum(axis=1) - 1).max() < 1e-12 and (model.matrix().data > 0).all()

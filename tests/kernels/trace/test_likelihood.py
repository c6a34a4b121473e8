"""ln Pr(z|s) of snapped noise against the oracle's integrals, and the density by its formula."""

import numpy as np
import pytest

import naive
import pglp_fast as pf
from pglp_fast._kernels.trace import likelihood as kernels
from pglp_fast.policy.kernel_arrays import kernel_policy

GRID = pf.Grid(3, 3, cell_km=(1.0, 0.5))
SQUARE = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)], float)
SEGMENT = np.array([(-1, 0), (1, 0)], float)
MEMBERS = np.arange(9, dtype=np.int32)


@pytest.mark.parametrize("polygon", [SQUARE, SEGMENT], ids=["square", "segment"])
def test_exact(polygon):
    """All of z's region, for every z; for a segment also where the density was asked for."""
    policy = kernel_policy(pf.complete(GRID))
    lattice = [tuple(p) for p in GRID.lattice.tolist()]
    body = [(x * 1.0, y * 0.5) for x, y in polygon.tolist()]
    P = naive.pmf_matrix(lattice, GRID.scale, list(range(9)), body, 1.3)
    for z in range(9):
        for exact in (True, False):
            if exact or len(polygon) == 2:
                out = np.empty(9)
                kernels.log_likelihood(policy, MEMBERS, z, polygon, 1.3, exact, out)
                assert np.exp(out) == pytest.approx(P[:, z], rel=1e-9, abs=1e-12)


def test_density():
    """-eps ||f(z) - f(s)||_K: for the square of side 2, the larger of |dx| and |dy|."""
    policy = kernel_policy(pf.complete(GRID))
    out = np.empty(9)
    for z in range(9):
        kernels.log_likelihood(policy, MEMBERS, z, SQUARE, 1.3, False, out)
        away = np.abs(GRID.lattice - GRID.lattice[z]).max(axis=1)
        assert out == pytest.approx(-1.3 * away)

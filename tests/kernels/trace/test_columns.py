"""The memory of exact likelihoods against the integrals that it remembers."""

import numpy as np
import pytest

import pglp_fast as pf
from pglp_fast._kernels.noise.emission import log_column
from pglp_fast._kernels.policy.shapes import sites_of
from pglp_fast._kernels.trace import columns as kernels
from pglp_fast.policy.kernel_arrays import kernel_policy

SQUARE = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)], float)
HEXAGON = np.array([(-2, -1), (0, -1), (2, 0), (2, 1), (0, 1), (-2, 0)], float)


def direct(policy, members, z, polygon, epsilon):
    """ln Pr(z|s) without a memory."""
    sites, k = sites_of(members, policy.lattice), len(members)
    out = np.empty(k)
    log_column(sites, policy.stretch, polygon, epsilon, np.arange(k), z, np.empty(k, np.int64), out)
    return out


@pytest.mark.parametrize("cell_km", [1.0, (1.0, 0.6), (0.5, 1.3)], ids=str)
@pytest.mark.parametrize("hole", [(), (7, 8, 14)], ids=["full", "holes"])
def test_equals_the_integrals(cell_km, hole):
    """Every z, twice: once worked out, once looked up. In the middle of the map, at its edges and
    corners, and beside a hole, where more sites than the four bound a region."""
    grid = pf.Grid(4, 6, cell_km=cell_km)
    policy = kernel_policy(pf.complete(grid))
    members = np.setdiff1d(np.arange(24), hole).astype(np.int32)
    columns = kernels.make_columns(4, 6)
    for _ in range(2):
        for polygon, epsilon in ((SQUARE, 1.3), (HEXAGON, 0.7)):
            for z in range(len(members)):
                logs, chances = np.empty(len(members)), np.empty(len(members))
                assert kernels.look_up_column(
                    columns, policy, members, z, polygon, epsilon, logs, chances
                )
                wanted = direct(policy, members, z, polygon, epsilon)
                assert logs == pytest.approx(wanted, rel=1e-13, abs=1e-13)
                assert chances == pytest.approx(np.exp(wanted), rel=1e-12)


def test_what_is_known_is_not_worked_out_again():
    """A number that is put there by hand comes back, at every z of the same surroundings."""
    policy, members = kernel_policy(pf.complete(pf.Grid(5, 5))), np.arange(25, dtype=np.int32)
    columns, logs, chances = kernels.make_columns(5, 5), np.empty(25), np.empty(25)
    kernels.look_up_column(columns, policy, members, 12, SQUARE, 1.0, logs, chances)
    columns.logs[0, 4 * 9 + 4] = -5.0  # the difference 0
    kernels.look_up_column(columns, policy, members, 6, SQUARE, 1.0, logs, chances)
    assert logs[6] == -5.0
    kernels.look_up_column(columns, policy, members, 12, SQUARE, 2.0, logs, chances)
    assert logs[12] != -5.0  # another epsilon


def test_the_oldest_goes():
    policy, members = kernel_policy(pf.complete(pf.Grid(3, 3))), np.arange(9, dtype=np.int32)
    columns, room = kernels.make_columns(3, 3), np.empty((2, 9))
    for k in range(kernels.SLOTS + 1):
        kernels.look_up_column(columns, policy, members, 4, SQUARE, 1.0 + k, room[0], room[1])
    epsilons = columns.keys[:, 2].copy().view(np.float64)
    assert epsilons[0] == 1.0 + kernels.SLOTS
    assert epsilons[1] == 2.0
    assert columns.oldest[0] == 1


def test_sites_beside():
    policy, out = kernel_policy(pf.complete(pf.Grid(3, 3))), np.empty(4, np.int64)
    members = np.array([0, 1, 2, 3, 4, 5, 7], np.int32)
    assert kernels.beside(policy, members, 4, out) == 4
    assert sorted(out.tolist()) == [1, 3, 5, 6]
    assert kernels.beside(policy, members, 1, out) == 3  # at the map's edge
    assert kernels.beside(policy, members, 6, out) == -1  # 6 and 8 are on the map, but no members


def test_no_memory():
    """For scattered points, for a map with too many differences, and for too long a key."""
    assert len(kernels.make_columns(0, 0).keys) == 0
    assert len(kernels.make_columns(2000, 2000).keys) == 0
    policy, members = kernel_policy(pf.complete(pf.Grid(3, 3))), np.arange(9, dtype=np.int32)
    round_one = np.tile(SQUARE, (20, 1))
    args = policy, members, 4, round_one, 1.0, np.empty(9), np.empty(9)
    assert not kernels.look_up_column(kernels.make_columns(3, 3), *args)
    assert not kernels.look_up_column(kernels.make_columns(0, 0), *args)

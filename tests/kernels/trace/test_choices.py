"""One number for a policy and an epsilon, and what it stands for."""

import numpy as np

import pglp_fast as pf
from cases import trace_requests, trace_settings
from pglp_fast._kernels.trace import choices as kernels
from pglp_fast.policy.kernel_arrays import kernel_policy
from pglp_fast.traces.policies import PolicySet

GRID = pf.Grid(4, 5)
GRAPHS = (
    pf.blocks(GRID, 2),
    pf.PolicyGraph.from_edges(GRID, [(0, 1), (7, 8), (8, 9)]),
    pf.blocks(GRID, 3).with_edges([(0, 19)]),
)
STACKED = PolicySet(GRAPHS).stacked()
EPSILONS = np.array([0.5, 1.25])


def test_each_policy_is_found_again():
    """Row by row; cliques and further edges of one are not those of another."""
    for k, graph in enumerate(GRAPHS):
        found, own = kernels.policy_at(STACKED, k), kernel_policy(graph)
        for name in found._fields:
            if name in ("indptr", "indices"):
                continue
            assert np.array_equal(getattr(found, name), getattr(own, name)), name
        for i in range(GRID.size):
            mine = found.indices[found.indptr[i] : found.indptr[i + 1]]
            assert mine.tolist() == own.indices[own.indptr[i] : own.indptr[i + 1]].tolist()


def test_choices():
    settings = trace_settings(delta=0.25)
    for number in range(6):
        chosen = kernels.choose(STACKED, settings, EPSILONS, np.int64(number))
        assert kernels.number_of_policy(chosen) == number % 3
        assert chosen.settings.epsilon == EPSILONS[number // 3]
        assert np.int64(chosen.settings.bits).view(np.float64) == EPSILONS[number // 3]
        assert chosen.settings.choice == number
        assert chosen.settings.delta == 0.25
        assert (chosen.policy.cliques == GRAPHS[number % 3].cliques).all()


def requests(choice, places):
    n = len(choice)
    plain = trace_requests(
        np.zeros(8, np.uint32), np.array([0, n]), np.array([0]), np.zeros(n, np.int64),
        np.arange(n), np.zeros(n, np.int32), False, False,
    )  # fmt: skip
    return plain._replace(
        choice=np.array(choice, np.int32), places=np.array(places, np.int32), epsilons=EPSILONS
    )


def test_what_was_released_last_may_choose_the_policy_but_not_epsilon():
    places = np.full(GRID.size, -1)
    places[[3, 4]] = 2, 0
    released = np.array([3, 4, 5, -1], np.int32)
    asked = requests([1, 4, 4, 4], places)
    numbers = [kernels.number_at(STACKED, asked, released, e, 0) for e in range(4)]
    assert numbers == [1, 5, 3, 4]
    assert kernels.number_at(STACKED, asked, released, 1, 1) == 4  # a user's first event
    plain = requests([1, 4, 4, 4], [])
    assert [kernels.number_at(STACKED, plain, released, e, 0) for e in range(4)] == [1, 4, 4, 4]
    chosen = kernels.choose(STACKED, trace_settings(), EPSILONS, np.int64(5))
    assert kernels.choose_at(chosen, asked, released, 1, 0).number == 5
    assert kernels.choose_at(chosen, asked, released, 2, 0).policy.cliques[0] == 0

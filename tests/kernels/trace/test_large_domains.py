"""Large domains: kept while their cells are the same, repaired anew when they are not."""

import numpy as np

import pglp_fast as pf
from cases import trace_settings
from pglp_fast._kernels.base.bits import set_cells
from pglp_fast._kernels.trace import large_domains
from pglp_fast._kernels.trace.choices import choose
from pglp_fast._kernels.trace.forward import Belief
from pglp_fast._kernels.trace.records import OWN, make_step_workspace
from pglp_fast.traces.policies import PolicySet

GRAPH = pf.blocks(pf.Grid(4, 4), 2)


def test_kept_and_left():
    policies, settings = PolicySet.of(GRAPH).stacked(), trace_settings()
    space = make_step_workspace(16, GRAPH.n_cliques)
    one = large_domains.nothing_kept_at(policies, settings, space, 1)
    chosen = choose(policies, settings, np.array([1.0]), np.int64(0))

    def keep(old, cells, values):
        domain = Belief(OWN, np.array(cells, np.int32), np.array(values))
        set_cells(space.domain.words, domain.cells)
        new = large_domains.keep_large(old, 1, chosen, space, domain, np.int64(-2))
        assert not space.domain.words.any()
        return new

    first = keep(one, [0, 1, 10], [0.5, 0.25, 0.25])
    assert first.repaired.counts.tolist() == [1, 1, 1, 0]  # 10 is alone, and joined to another
    assert first.domain.cells.tolist() == [0, 1, 10]
    again = keep(first, [0, 1, 10], [0.25, 0.5, 0.25])
    assert np.shares_memory(again.repaired.added, first.repaired.added)
    assert again.domain.values.tolist() == [0.25, 0.5, 0.25]
    other = keep(again, [0, 1, 4], [0.25, 0.5, 0.25])
    assert other.repaired.counts.tolist() == [0, 0, 0, 0]
    held = np.unpackbits(space.large.words[1].view(np.uint8), bitorder="little")
    assert np.flatnonzero(held).tolist() == [0, 1, 4]
    large_domains.leave(other.repaired)
    assert not space.large.words.any()
    assert (space.large.head == -1).all()

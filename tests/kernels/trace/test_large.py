"""Large domains: kept while their cells are the same, repaired anew when they are not."""

import numba
import numpy as np
import pytest

import pglp_fast as pf
from cases import trace_settings
from pglp_fast._kernels.base.bits import set_cells
from pglp_fast._kernels.trace import large
from pglp_fast._kernels.trace.choices import choose
from pglp_fast._kernels.trace.forward import Belief
from pglp_fast._kernels.trace.records import OWN, make_step_workspace
from pglp_fast.traces.policies import PolicySet

GRAPH = pf.blocks(pf.Grid(4, 4), 2)


@pytest.mark.skipif(not numba.config.DISABLE_JIT, reason="lists of tuples stay in compiled code")
def test_kept_and_left():
    policies, settings = PolicySet.of(GRAPH).stacked(), trace_settings()
    space = make_step_workspace(16, GRAPH.n_cliques)
    kept = large.nothing_kept(policies, settings, space)
    assert len(kept) == 2
    chosen = choose(policies, settings, np.array([1.0]), np.int64(0))

    def keep(cells, values):
        domain = Belief(OWN, np.array(cells, np.int32), np.array(values))
        set_cells(space.domain.words, domain.cells)
        kept[1] = large.keep_large(kept, 1, chosen, space, domain, np.int64(-2))
        assert not space.domain.words.any()
        return kept[1]

    first = keep([0, 1, 10], [0.5, 0.25, 0.25])
    assert first.repaired.counts.tolist() == [1, 1, 1, 0]  # 10 is alone, and joined to another
    assert first.domain.cells.tolist() == [0, 1, 10]
    again = keep([0, 1, 10], [0.25, 0.5, 0.25])
    assert again.repaired.added is first.repaired.added
    assert again.domain.values.tolist() == [0.25, 0.5, 0.25]
    other = keep([0, 1, 4], [0.25, 0.5, 0.25])
    assert other.repaired.counts.tolist() == [0, 0, 0, 0]
    assert np.flatnonzero(np.unpackbits(space.large.words[1].view(np.uint8), bitorder="little"))[
        :3
    ].tolist() == [0, 1, 4]
    for one in kept:
        large.leave(one.repaired)
    assert not space.large.words.any()
    assert (space.large.head == -1).all()

"""One cell given as a number takes a shorter way than an array, and gives the same."""

import numpy as np
import pytest

import pglp_fast as pf

GRID = pf.Grid(7, 7, cell_km=(0.4, 0.5))
GRAPH = pf.blocks(GRID, 3).with_edges([(0, 48)])
DOMAIN = pf.Domain(GRID, np.arange(5, 40))


class Swapped(pf.KRR):
    """One that draws in a way of its own, and knows nothing of single releases."""

    name = "swapped"

    def draw(self, requests, out):
        super().draw(requests, out)
        out[:] = GRID.size - 1 - out


MADE = {
    "ppim": lambda: pf.PPIM(GRAPH, epsilon=1.0),
    "plm in a domain": lambda: pf.PLM(GRAPH, epsilon=0.5, domain=DOMAIN),
    "noise": lambda: pf.PPIM(GRAPH, epsilon=1.0, sampler="geometric"),
    "graph": lambda: pf.PPIM(GRAPH, epsilon=1.0, calibration="graph"),
    "krr": lambda: pf.KRR(GRAPH, epsilon=2.0),
    "remapped": lambda: pf.Remapped(pf.KRR(GRAPH, epsilon=0.3)),
    "remapped noise": lambda: pf.Remapped(pf.PPIM(GRAPH, epsilon=0.3)),
    "of its own": lambda: Swapped(GRAPH, epsilon=2.0),
}


@pytest.mark.parametrize("name", MADE)
def test_a_number_is_released_as_an_array_of_one(name):
    """Before and after tables are there, at several t. Would catch another counter, another row of
    the table, and a mechanism whose own draw is passed over."""
    m = MADE[name]()
    cells = DOMAIN.cells() if m.domain is not None else np.arange(GRID.size)
    for _ in range(2):
        for cell in cells.tolist():
            for t in (0, 3, 2**40 + cell):
                one = m.release(cell, t=t, rng=11)
                assert one == m.release([cell], t=t, rng=11)[0]
                assert (one.dtype, one.shape) == (np.int32, ())
                assert one == m.release(np.int64(cell), t=t, rng=11)
                assert one == m.release(cell, users=0, t=t, rng=11)


def test_what_is_wrong_is_told_the_same_way():
    m = MADE["plm in a domain"]()
    m.release(DOMAIN.cells())
    for wrong, error in ((-2, pf.InvalidLocation), (49, pf.InvalidLocation), (3, pf.InvalidDomain)):
        with pytest.raises(error):
            m.release(wrong)
    for wrong in (dict(t=-1), dict(t=2**56), dict(rng=-1), dict(rng=1.5)):
        with pytest.raises(pf.InvalidParameter):
            m.release(5, **wrong)
    with pytest.raises(pf.InvalidLocation):
        m.release(True)


def test_every_release_without_a_seed_has_a_key_of_its_own():
    """40 releases that agree by chance: 9 ** -39."""
    m = pf.PPIM(pf.blocks(GRID, 3), epsilon=0.01)
    assert len({int(m.release(0)) for _ in range(40)}) > 1

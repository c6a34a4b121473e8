"""What less noise costs: nothing at release, one linear program for each distinct shape before."""

import numpy as np
import pytest

import pglp_fast as pf


@pytest.mark.parametrize("make", [pf.Optimal, pf.KRR], ids=["Optimal", "KRR"])
def test_releases_as_fast_as_ppim(make, ratio, promise):
    """The same table kernel: 10 million releases on a million cells, within a tenth of P-PIM's
    time."""
    G = pf.blocks(pf.Grid(1000, 1000), 5)
    cells = np.random.default_rng(0).integers(0, 1_000_000, 10_000_000).astype(np.int32)
    ours, theirs = make(G, epsilon=1.0), pf.PPIM(G, epsilon=1.0)
    promise(ratio(lambda: ours.release(cells), lambda: theirs.release(cells)), 1.1)


@pytest.mark.parametrize(
    ("rows", "cols", "shapes", "limit"), [(1000, 1000, 1, 2.0), (1003, 1001, 4, 5.0)]
)
def test_a_city_is_solved_as_fast_as_its_shapes(rows, cols, shapes, limit, ratio, promise):
    """A million cells in 40,000 blocks of one or four shapes against one block alone."""

    def solve(m):
        m._matrices.clear()
        m.tables.missing[:] = True
        m.tables.ensure()

    one = pf.Optimal(pf.blocks(pf.Grid(5, 5), 5), epsilon=1.0)
    city = pf.Optimal(pf.blocks(pf.Grid(rows, cols), 5), epsilon=1.0)
    assert len(city.groups.representative) == shapes
    promise(ratio(lambda: solve(city), lambda: solve(one)), limit)


def test_symmetry_helps(ratio, promise, monkeypatch):
    """A 7 x 7 block with one variable for each orbit against the same program without."""
    from pglp_fast.mechanisms import linear_program

    m = pf.Optimal(pf.blocks(pf.Grid(7, 7), 7), epsilon=1.0)
    component = m.groups.component(0)
    at = component.sites * 1.0
    cost = np.hypot(*(at[:, None] - at[None]).transpose(2, 0, 1)) / 49
    every = linear_program.symmetries

    def solve(symmetries):
        monkeypatch.setattr(linear_program, "symmetries", symmetries)
        return linear_program.solve(cost, component, 1.0)

    value = ratio(lambda: solve(every), lambda: solve(lambda c, x: every(c, x)[:1]), rounds=2)
    promise(value, 0.5)

"""The adversary's support is that of what is drawn, and tables are never mixed up."""

import numpy as np
import pytest

import pglp_fast as pf
from pglp_fast.traces.table_cache import Growing

EPSILON = 1.0


def far_blocks(likelihood="exact"):
    """Two blocks 78 columns apart; whoever is in one of them goes to cell 10, from the other to
    cell 70."""
    g = pf.Grid(2, 80)
    M = np.zeros((160, 160))
    M[:, 10] = 1.0
    M[[78, 79, 158, 159]] = 0.0
    M[[78, 79, 158, 159], 70] = 1.0
    prior = np.zeros(160)
    prior[[0, 1, 80, 81, 78, 79, 158, 159]] = 1 / 8
    T = pf.TraceReleaser(
        pf.blocks(g, 2), pf.MobilityModel(g, M), epsilon=EPSILON, calibration="graph", rng=1,
        likelihood=likelihood,
    )  # fmt: skip
    return T, prior


@pytest.mark.parametrize("likelihood", ["exact", "density"])
def test_an_answer_of_weight_zero_is_impossible(likelihood):
    """The far block's integer weight of the answer 0 is 0: it cannot have said it. Then the second
    domain is {10} alone, and that is told. Would catch a likelihood that is taken from exact
    probabilities which float64 holds and 63 bits do not."""
    T, prior = far_blocks(likelihood)
    R = T.run(np.array([[0, 10]] * 20), prior)
    near = np.isin(R.released[:, 0], [0, 80])  # the column that is farthest from the other block
    assert near.any()
    assert (R.domain_size[near, 1] == 1).all()
    assert R.exposed[near, 1].all()
    assert R.certificate.exposed == R.exposed.sum()


def test_an_addition_that_fails_is_undone(monkeypatch):
    """Half of a table was added when memory ran out: the next one must not take its place.

    Would catch a component that draws from another one's table."""
    g = pf.Grid(6, 6)
    model = pf.MobilityModel.fit(g, [[0, 1, 2]], unseen="neighbours8")
    T = pf.TraceReleaser(pf.blocks(g, 3), model, epsilon=EPSILON, rng=2)
    traces = np.random.default_rng(0).integers(0, 36, (20, 4))
    extend, calls = Growing.extend, []

    def failing(self, part):
        calls.append(1)
        if len(calls) == 7:
            raise MemoryError
        extend(self, part)

    with monkeypatch.context() as patch:
        patch.setattr(Growing, "extend", failing)
        with pytest.raises(MemoryError):
            T.run(traces)
    expected = pf.TraceReleaser(pf.blocks(g, 3), model, epsilon=EPSILON, rng=2).run(traces)
    found = T.run(traces)
    assert (found.released == expected.released).all()
    assert found.certificate.proof.tables == expected.certificate.proof.tables


def test_a_replay_that_contradicts_itself_is_told_whatever_others_need():
    """One user's release is impossible while another one's table is still missing."""
    g = pf.Grid(3, 6)
    model = pf.MobilityModel(g, np.eye(18))
    prior = np.zeros((2, 18))
    prior[0, [0, 1]], prior[1, [4, 5, 10, 11]] = 0.5, 0.25
    for remap in (None, "euclidean"):
        T = pf.TraceReleaser(pf.blocks(g, 3), model, epsilon=EPSILON, remap=remap)
        with pytest.raises(pf.InvalidTransition, match="cannot have released"):
            T.observe([[17, 0], [4, 4]], prior)

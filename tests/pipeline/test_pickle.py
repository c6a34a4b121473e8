"""Mechanisms, models, releasers and plans travel between processes and release the same there."""

import pickle

import numpy as np
import pytest

import pglp_fast as pf

G = pf.Grid(6, 6, cell_km=0.4)
POLICY = pf.blocks(G, 3)
CELLS = np.arange(G.size)


def sent(thing):
    return pickle.loads(pickle.dumps(thing))


@pytest.mark.parametrize(
    "made",
    [
        pf.PPIM(POLICY, epsilon=1.0),
        pf.PLM(POLICY, epsilon=1.0, sampler="geometric"),
        pf.KRR(POLICY, epsilon=1.0),
        pf.GraphExponential(POLICY, epsilon=1.0),
        pf.PlanarLaplace(POLICY, epsilon=1.0),
        pf.Remapped(pf.PPIM(POLICY, epsilon=1.0), loss="squared"),
        pf.PPIM(POLICY, epsilon=1.0, domain=pf.Domain(G, CELLS[:20])),
    ],
    ids=lambda m: type(m).__name__,
)
def test_mechanisms(made):
    cells = CELLS[:20]
    before = sent(made).release(cells, rng=1)
    drawn = made.release(cells, rng=1)
    assert (before == drawn).all() and (sent(made).release(cells, rng=1) == drawn).all()


def test_models_and_releasers():
    model = pf.MobilityModel.fit(G, np.random.default_rng(0).integers(0, 36, (20, 30)))
    stationary = model.stationary()
    stationary[0] = 7  # a copy: what the model knows stays
    assert (sent(model).stationary() == model.stationary()).all() and model.stationary()[0] < 1
    releaser = pf.TraceReleaser(POLICY, model, epsilon=1.0, rng=3)
    traces = np.random.default_rng(1).integers(0, 36, (4, 9))
    expected = releaser.run(traces).released
    assert (sent(releaser).run(traces).released == expected).all()
    assert len(pickle.dumps(model)) < 2 * sum(a.nbytes for c in model.chains for a in c) + 4000


@pytest.mark.parametrize("domain", [None, pf.Domain(G, CELLS[7:])])
def test_a_place_off_the_map_is_released_as_such(domain):
    m = pf.PPIM(POLICY, epsilon=1.0, domain=domain)
    cells = np.array([-1, 8, 9, -1, 20, 35])
    drawn = m.release(cells, rng=5)
    assert (drawn[cells < 0] == -1).all() and (drawn[cells >= 0] >= 0).all()
    where = np.where(cells < 0, 8, cells)  # the draws of the others stay what they were
    assert (drawn[cells >= 0] == m.release(where, rng=5)[cells >= 0]).all()
    assert m.release(-1) == -1 and (m.release([-1, -1]) == -1).all()
    with pytest.raises(pf.InvalidLocation, match=r"cells\[1\] = 36 is not one of the 36"):
        m.release([-1, 36])
    if domain is not None:
        with pytest.raises(pf.InvalidDomain, match=r"cells\[1\] = 0 is outside the domain"):
            m.release([-1, 0])

"""What one release leaves to guess, against sums written out; and comparisons that show both
sides."""

import numpy as np
import pytest

import pglp_fast as pf
from cases import large

KINDS = {
    "ppim": lambda G, C, e: pf.PPIM(G, epsilon=e, domain=C),
    "graph": lambda G, C, e: pf.PLM(G, epsilon=e, domain=C, calibration="graph"),
    "krr": lambda G, C, e: pf.KRR(G, epsilon=e, domain=C),
    "optimal": lambda G, C, e: pf.Optimal(G, epsilon=e, domain=C),
    "remapped": lambda G, C, e: pf.Remapped(pf.PPIM(G, epsilon=e, domain=C)),
}


def written_out(m, prior):
    """(error, entropy, lift, told error, told entropy) by loops over every component, output,
    location and guess."""
    g = m.locations
    error = entropy = told = told_entropy = 0.0
    lift = 0.0
    seen = set()
    for s0 in range(g.size):
        if m.groups.address[s0, 0] < 0 or s0 in seen:
            continue
        outputs, P = m.matrix(s0)
        cells = [int(c) for c in outputs]
        seen |= set(cells)
        mass = sum(prior[c] for c in cells)
        if mass == 0:
            continue
        told += min(sum(prior[s] * g.distance(s, w) for s in cells) for w in cells)
        told_entropy -= sum(prior[s] * np.log2(prior[s] / mass) for s in cells if prior[s] > 0)
        for z in range(len(cells)):
            joint = [prior[s] * P[i, z] for i, s in enumerate(cells)]
            said = sum(joint)
            if said == 0:
                continue
            error += min(sum(j * g.distance(s, w) for j, s in zip(joint, cells)) for w in cells)
            entropy -= sum(j * np.log2(j / said) for j in joint if j > 0)
            lift = max(
                lift,
                *(
                    np.log(P[i, z] / (said / mass))
                    for i, s in enumerate(cells)
                    if prior[s] > 0 and P[i, z] > 0
                ),
            )
    return error, entropy, lift, told, told_entropy


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("even", [True, False])
@pytest.mark.parametrize("constrained", [False, True])
def test_against_sums_written_out(kind, even, constrained):
    """Catches a prior that is not normalised, shapes counted once instead of as often as they
    occur, min and sum swapped."""
    rng = np.random.default_rng([len(kind), even])
    g = pf.Grid(4, 5, cell_km=(0.5, 0.3))
    C = pf.Domain(g, rng.permutation(20)[:15]) if constrained else None
    m = KINDS[kind](pf.blocks(g, 3), C, 1.1)
    inside = np.ones(20) if C is None else C.mask().astype(float)
    prior = inside if even else inside * rng.random(20) * (rng.random(20) < 0.8)
    p = pf.privacy(m, prior=None if even else prior)
    ref = written_out(m, prior / prior.sum())
    assert (p.error, p.entropy, p.lift, p.told_error, p.told_entropy) == pytest.approx(
        ref, rel=1e-11, abs=1e-13
    )


def test_bounds():
    """The adversary never errs more than by the component alone, nor than the release itself;
    the lift keeps the promise."""
    G = pf.blocks(pf.Grid(5, 5), 5)
    for make in KINDS.values():
        for epsilon in (0.01, 1.0, 8.0):
            m = make(G, None, epsilon)
            u, p = pf.utility(m), pf.privacy(m)
            assert p.error <= p.told_error * (1 + 1e-12)
            assert p.error <= u.e_eu * (1 + 1e-12)
            assert p.entropy <= p.told_entropy * (1 + 1e-12)
            assert p.lift + 1e-12 >= 0
            assert p.lift <= epsilon * (1 + 1e-9)


def test_the_best_guess_is_the_remapped_release():
    """A user who remaps and an adversary who guesses do the same: their errors agree, and the
    optimum leaves nothing to gain."""
    G = pf.blocks(pf.Grid(4, 4), 4)
    prior = np.random.default_rng(0).random(16)
    m = pf.PPIM(G, epsilon=1.5)
    assert pf.privacy(m, prior=prior).error == pytest.approx(
        pf.utility(pf.Remapped(m, prior), prior=prior).e_eu, rel=1e-12
    )
    best = pf.Optimal(G, epsilon=1.5, prior=prior)
    assert pf.privacy(best, prior=prior).error == pytest.approx(
        pf.utility(best, prior=prior).e_eu, rel=1e-6
    )


def test_nothing_to_hide():
    G = pf.PolicyGraph.from_edges(pf.Grid(2, 2), [])
    assert pf.privacy(pf.PPIM(G, epsilon=1.0)) == pf.Privacy(0.0, 0.0, 0.0, 0.0, 0.0)


@large
def test_a_city():
    """One shape under an even prior, 40,000 priors under another; both as a single block says."""
    g = pf.Grid(1000, 1000)
    m = pf.PPIM(pf.blocks(g, 5), epsilon=1.0)
    one = pf.privacy(pf.PPIM(pf.blocks(pf.Grid(5, 5), 5), epsilon=1.0))
    for prior in (None, np.ones(g.size)):
        p = pf.privacy(m, prior=prior)
        assert (p.error, p.entropy, p.lift) == pytest.approx(
            (one.error, one.entropy, one.lift), rel=1e-9
        )


def test_comparison():
    G = pf.blocks(pf.Grid(5, 5), 5)
    c = pf.compare(
        {"P-PIM": pf.PPIM(G, epsilon=2.0), "best": pf.Optimal(G, epsilon=2.0)},
        region=5,
        quantiles=(0.9,),
    )
    text = str(c)
    assert "utility (less is better)" in text
    assert "privacy (more is better" in text
    assert "P-PIM" in text
    rows = c.as_rows()
    assert [r["mechanism"] for r in rows] == ["P-PIM", "best"]
    assert rows[0]["e_eu"] == pytest.approx(2.1855, abs=1e-4)
    assert rows[1]["adversary_error"] == pytest.approx(1.4635, abs=1e-4)
    assert list(pf.compare([pf.KRR(G, epsilon=1.0)]).rows) == ["KRR"]
    assert list(
        pf.compare([pf.KRR(G, epsilon=1.0), pf.PPIM(G, epsilon=1.0), pf.KRR(G, epsilon=2.0)]).rows
    ) == [
        "KRR 1",
        "PPIM",
        "KRR 2",
    ]
    assert "component alone" in text
    assert "component alone" not in str(
        pf.compare([pf.KRR(G, epsilon=1.0), pf.KRR(pf.blocks(pf.Grid(5, 5), 3), epsilon=1.0)])
    )


def test_errors():
    with pytest.raises(pf.InvalidParameter, match="privacy takes a mechanism, got int"):
        pf.privacy(3)
    with pytest.raises(pf.InvalidParameter, match="at least one mechanism"):
        pf.compare({})
    with pytest.raises(
        pf.TooLarge, match="exact privacy is computed up to 2048: release traces and attack them"
    ):
        pf.privacy(pf.PPIM(pf.complete(pf.Grid(50, 50)), epsilon=1.0))

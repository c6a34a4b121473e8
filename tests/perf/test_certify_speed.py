"""What a proof costs: of tables the integrals that fill them, of noise its premises in integers.

Random categories are the hardest of the named policies: almost every block has a shape of its own.
A million cells have 56,000 to 90,000 of them, which must be proved within a minute."""

import numpy as np
import pytest

import pglp_fast as pf


def random_categories(labels):
    g = pf.Grid(120, 120)
    return pf.categories(g, np.random.default_rng(0).integers(0, labels, g.size), 6)


@pytest.mark.parametrize(
    ("make", "most"), [(pf.PPIM, 0.6), (pf.PLM, 0.6), (pf.PlanarLaplace, 0.25)],
    ids=["PPIM", "PLM", "PlanarLaplace"],
)  # fmt: skip
def test_premises_cost_less_than_tables(make, most, ratio, promise):
    """Certificates of the same shapes drawn as noise, where rational numbers are compared, against
    drawn from tables, where every probability is worked out."""
    G = random_categories(2)
    made = {how: make(G, epsilon=1.0, sampler=how) for how in ("geometric", "table")}
    assert pf.certify(made["geometric"]).ok
    assert len(made["table"].groups.representative) > 700

    def prove(how):
        fresh = made[how].bound_to(G, sampler=how)
        rounding = pf.certify(fresh)
        assert rounding.proof == {"geometric": "premises", "table": "table"}[how]

    promise(ratio(lambda: prove("geometric"), lambda: prove("table"), rounds=2), most)


@pytest.mark.parametrize(
    ("make", "most"), [(pf.PPIM, 3.0), (pf.PLM, 3.0), (pf.PlanarLaplace, 9.0)],
    ids=["PPIM", "PLM", "PlanarLaplace"],
)  # fmt: skip
def test_a_probability_costs_a_few_calls_of_numpy(make, most, in_calls, promise):
    """A certificate of tables by each of their probabilities, against one scalar call of NumPy's
    noise."""
    G = random_categories(3)
    sizes = make(G, epsilon=1.0).groups.sizes

    def prove():
        assert pf.certify(make(G, epsilon=1.0, sampler="table")).ok

    promise(in_calls(prove, (sizes**2).sum(), rounds=1), most)

"""The certificate's ``rounding``, measured: how much probability float64 moves.

For fixed other words, the release is a function of one 64-bit word along a line in the plane. It
changes where the line crosses from one region to the next, at most once for each, because regions
are convex. Those places are found by bisection twice: as the sampler computes, and exactly, with
all 64 bits of the word. The share of words between the two is what rounding moved, to 2^-64.
"""

from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

import pglp_fast as pf
from cases import draw_noise, draw_words, large, path
from pglp_fast._kernels.geometry import kdtree
from pglp_fast._kernels.noise import alias_rows

pytestmark = large
LINES = 3


def unit(word):
    return Fraction(2 * int(word) + 1, 2**65)


def log(u):
    with localcontext() as context:
        context.prec = 60
        return Fraction((Decimal(u.numerator) / Decimal(u.denominator)).ln())


def exact_release(m, s, words):
    """The release of these words in exact arithmetic (logarithms to 60 digits)."""
    shape = m.groups.shape(s)
    K = [(Fraction(x), Fraction(y)) for x, y in m.polygon(shape).tolist()]
    if len(K) == 2:
        r = -log(unit(words[2])) / Fraction(m.epsilon)
        x, y = K[int(words[0]) >> 63]
    else:
        cones = m.geometry.geometry.cones
        at, bits = int(cones.offset[shape]), int(cones.bits[shape])
        i = int(alias_rows.pick(np.uint64(words[0]), cones.cut, cones.alias, at, bits))
        (ax, ay), (bx, by) = K[i], K[(i + 1) % len(K)]
        t = unit(words[1])
        r = -(log(unit(words[2])) + log(unit(words[3]))) / Fraction(m.epsilon)
        x, y = ax + t * (bx - ax), ay + t * (by - ay)
    here = m.locations.lattice[s]
    x, y = int(here[0]) + r * x, int(here[1]) + r * y
    dx, dy = map(Fraction, m.locations.scale)
    sites = [(int(z), *map(int, m.locations.lattice[z])) for z in m.groups.of(s)]
    return min((((c - x) * dx) ** 2 + ((d - y) * dy) ** 2, z) for z, c, d in sites)[1]


def float_release(m, s, words):
    """The release of these words by the sampler's own kernels."""
    shape = m.groups.shape(s)
    members, lattice = m.groups.of(s), m.locations.lattice.astype(np.int64)
    dx, dy = draw_noise(m, s, np.array([words], np.uint64))[0]
    x, y = lattice[s] - lattice[members[0]] + np.array([dx, dy])
    trees = m.geometry.geometry.trees
    a, b = trees.starts[shape], trees.starts[shape + 1]
    boxes = trees.boxes[trees.box_starts[shape] : trees.box_starts[shape + 1]]
    tie = kdtree.ALONG_A_LINE if len(m.polygon(shape)) == 2 else kdtree.ROUNDING
    place = kdtree.nearest_site(
        trees.sites[a:b], trees.order[a:b], boxes, m.locations.stretch, x, y,
        np.empty((kdtree.DEPTH, 3), np.int64), tie,
    )  # fmt: skip
    return int(members[place])


def changes(release, low, high, first, last):
    """Words at which the release changes between low and high, with what it changes to."""
    if first == last:
        return []
    if high - low == 1:
        return [(high, last)]
    middle = (low + high) // 2
    here = release(middle)
    return changes(release, low, middle, first, here) + changes(release, middle, high, here, last)


def moved(m, s, words, which):
    """The share of words number ``which`` whose release differs from the exact one."""
    pieces = []
    for how in (exact_release, float_release):

        def release(word, how=how):
            return how(m, s, [*words[:which], word, *words[which + 1 :]])

        first, last = release(0), release(2**64 - 1)
        pieces.append([(0, first), *changes(release, 0, 2**64 - 1, first, last)])
    cuts = sorted({word for piece in pieces for word, _ in piece} | {2**64})
    at = [dict(piece) for piece in pieces]
    now, total = [None, None], 0
    for cut, after in pairwise(cuts):
        now = [at[k].get(cut, now[k]) for k in (0, 1)]
        total += (after - cut) * (now[0] != now[1])
    return total / 2**64


SQUARE = pf.Points([(0, 0), (2, 0), (0, 2), (2, 2), (1, 1)], resolution_km=1.0)
HEXAGON = pf.Points(
    [(2, 0), (1, 2), (-1, 2), (-2, 0), (-1, -2), (1, -2), (0, 0)], resolution_km=1.0
)
FLAT = pf.Grid(3, 3, cell_km=(0.7, 0.3))
CASES = {
    "square and centre": lambda e, k: k(pf.complete(SQUARE), epsilon=e, sampler="geometric"),
    "star": lambda e, k: k(
        pf.PolicyGraph.from_edges(SQUARE, [(4, i) for i in range(4)]), epsilon=e,
        sampler="geometric",
    ),
    "flat cells with holes": lambda e, k: k(
        path(FLAT, [0, 4, 8, 2, 6]), epsilon=e, sampler="geometric"
    ),
    "hexagon": lambda e, k: k(
        pf.complete(HEXAGON), epsilon=e, sampler="geometric"
    ),
    # noise along the line between two sites: every draw is a tie
    "ties all along": lambda e, k: k(
        pf.PolicyGraph.from_edges(pf.Grid(5, 5, cell_km=(0.7, 0.3)), [(10, 12)]), epsilon=e,
        domain=pf.Domain(pf.Grid(5, 5, cell_km=(0.7, 0.3)), [0, 20, 10, 12, 4, 24]),
        calibration="graph", sampler="geometric",
    ),
}  # fmt: skip


@pytest.mark.parametrize("epsilon", [1.0, 1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("name", CASES)
def test_rounding_moves_no_more_than_the_certificate_says(name, epsilon):
    for kind in (pf.PPIM, pf.PLM):
        m = CASES[name](epsilon, kind)
        s = int(m.groups.of(int(m.graph.edges()[0, 0]))[0])
        claimed = pf.certify(m).rounding
        assert 0 < claimed < 1e-6
        words = draw_words(7, LINES)
        drawn = m.release(np.full(LINES, s), rng=7)
        shares = []
        for number, line in enumerate(words.tolist()):
            assert drawn[number] == float_release(m, s, line)
            segment = len(m.polygon(m.groups.shape(s))) == 2
            shares.append(moved(m, s, line, 2 if segment else 1))
        assert np.mean(shares) <= claimed, (kind.__name__, shares, claimed)

"""Keys and counters; releases that no batch, order or thread changes."""

import math
from itertools import pairwise

import numba
import numpy as np
import pytest
from hypothesis import given, strategies as st

import naive
import pglp_fast as pf
from cases import PURPOSES, large, times_of, users_of, words
from pglp_fast._kernels.base import chacha
from pglp_fast._kernels.noise.alias_rows import pick
from pglp_fast._util import threads
from pglp_fast.mechanisms.randomness import draw_counters, make_key

state_of = st.tuples(users_of, times_of, st.sampled_from(PURPOSES))


@given(state_of, state_of)
def test_states_are_distinct(a, b):
    """(block, t, purpose) to state words is one to one, up to the largest user and t: nothing is
    cut off or overlaps."""

    def state(block, t, purpose):
        counters = np.zeros((4, 1), np.uint32)
        chacha._set_counter(counters, 0, np.int64(block), np.int64(t), purpose)
        return counters[:, 0].tolist()

    assert (state(*a) == state(*b)) == (a == b)


# Keys and counters


def test_seeds():
    """Would catch a seed that is cut to 32 or 64 bits."""
    seeds = [0, 1, 2**32, 2**32 + 1, 2**64, 2**64 + 1, 10**40]
    keys = [tuple(make_key(s)) for s in seeds]
    assert len(set(keys)) == len(seeds)
    assert keys == [tuple(make_key(s)) for s in seeds]
    assert tuple(make_key(np.int8(1))) == keys[1]
    assert (make_key(0).dtype, make_key(0).shape) == (np.uint32, (8,))


def test_no_seed_is_a_fresh_key():
    assert len({tuple(make_key(None)) for _ in range(20)}) == 20


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2)), min_size=1, max_size=10),
    st.sampled_from([1, 10**6, 10**16]),
)
def test_repeats_are_refused(requests, far):
    """Exactly when a (user, t) occurs twice, close by (a bitmap) or far-flung (a sort); the
    message names a true repeat."""
    users, t = [u * far for u, _ in requests], [w for _, w in requests]
    for when in (t, 0):
        pairs = list(zip(users, when if when is t else [0] * len(users)))
        if len(set(pairs)) == len(pairs):
            draw_counters(users, when, len(users))
            continue
        with pytest.raises(
            pf.InvalidParameter, match=r"user \d+ occurs twice at t = \d+ \(again at position \d+\)"
        ) as caught:
            draw_counters(users, when, len(users))
        user, time, at = (
            int(w)
            for w in str(caught.value).replace(")", "").replace(":", "").split()
            if w.isdigit()
        )
        assert pairs[at] == (user, time)
        assert pairs[at] in pairs[:at]


def test_consecutive_users_are_recognised():
    """Ascending without a gap is one run; the same ends with a repeat, a gap or another order
    inside is not."""
    assert [a.tolist() for a in draw_counters(None, 7, 4)] == [[0], [7]]
    assert draw_counters([5, 6, 7, 8], 0, 4)[0].tolist() == [5]
    assert draw_counters([5, 7, 6, 8], 0, 4)[0].tolist() == [5, 7, 6, 8]
    assert draw_counters([], [], 0)[0].tolist() == []
    with pytest.raises(pf.InvalidParameter, match="user 6 occurs twice"):
        draw_counters([5, 6, 6, 8], 0, 4)


# Releases

N = 40 if numba.config.DISABLE_JIT else 700  # more than two chunks
g = pf.Grid(12, 13, cell_km=(0.5, 0.4))
scattered = pf.Points(np.random.default_rng(4).random((60, 2)))
big_and_small = np.where(
    np.arange(g.size) < 130, 0, 1 + np.arange(g.size) // 2
)  # "auto" takes a table up to 128
MECHANISMS = {
    "table": (pf.blocks(g, 3), {"sampler": "table"}),
    "geometric": (pf.blocks(g, 3), {"sampler": "geometric"}),
    "table, points": (pf.categories(scattered, np.arange(60) % 7, None), {"sampler": "table"}),
    "geometric, points": (
        pf.categories(scattered, np.arange(60) % 7, None),
        {"sampler": "geometric"},
    ),
    "both": (pf.categories(g, big_and_small, None), {"sampler": "auto"}),
    "graph": (pf.blocks(g, 3), {"sampler": "geometric", "calibration": "graph"}),
}


def make(name):
    graph, options = MECHANISMS[name]
    return pf.PPIM(graph, epsilon=1.0, **options)


@pytest.fixture(scope="module")
def mechanism(request):
    return make(request.param)


every = pytest.mark.parametrize("mechanism", MECHANISMS, indirect=True)


def test_auto_uses_both_samplers():
    assert sorted(set(make("both").tabled.tolist())) == [False, True]


def some_cells(m, n=N):
    return np.random.default_rng(6).integers(0, m.locations.size, n)


@every
def test_release_is_the_same_for_any_batch_and_order(mechanism):
    """Would catch a draw numbered by its place in the batch, and a chunk's words used for the
    next one."""
    cells = some_cells(mechanism)
    whole = mechanism.release(cells, rng=5)
    users = np.arange(N)
    assert (whole.dtype, whole.shape) == (np.int32, cells.shape)
    assert (whole != cells).any()
    order = np.random.default_rng(7).permutation(N)
    assert np.array_equal(mechanism.release(cells[order], users=order, rng=5), whole[order])
    assert np.array_equal(mechanism.release(cells, users=users, t=np.zeros(N, int), rng=5), whole)
    cuts = [0, 1, 4, 4, 13, N // 2 + 1, N]
    parts = [mechanism.release(cells[a:b], users=users[a:b], rng=5) for a, b in pairwise(cuts)]
    assert np.array_equal(np.concatenate(parts), whole)
    for i in (0, 9, N - 1):
        one = mechanism.release(cells[i], users=i, rng=5)
        assert one == whole[i]
        assert np.shape(one) == ()
    assert mechanism.release([], rng=5).shape == (0,)
    picked = order[: N // 3]  # a subset draws what it would have drawn in the whole
    assert np.array_equal(
        mechanism.release(cells[picked], users=picked, rng=np.uint8(5)), whole[picked]
    )


@pytest.mark.parametrize("name", MECHANISMS)
def test_release_does_not_depend_on_what_was_released_before(name):
    """Tables and trees are built on first use: would catch one that depends on which cells came
    first."""
    a, b = make(name), make(name)
    cells = some_cells(a)
    b.release(cells[-1:], rng=1)
    assert np.array_equal(a.release(cells, rng=5), b.release(cells, rng=5))


@every
def test_seeds_times_and_users_change_the_release(mechanism):
    cells = some_cells(mechanism)
    first = mechanism.release(cells, rng=5)
    others = [
        mechanism.release(cells, rng=6),
        mechanism.release(cells, rng=5, t=1),
        mechanism.release(cells, rng=5, t=2**40),
        mechanism.release(cells, rng=5, users=np.arange(N) + 2**40),
        mechanism.release(cells),
        mechanism.release(cells),
    ]
    releases = [tuple(r) for r in (first, *others)]
    assert len(set(releases)) == len(releases)


@every
def test_released_cells_are_in_the_output_set(mechanism):
    cells = some_cells(mechanism)
    for s, z in zip(cells, mechanism.release(cells, rng=2)):
        assert z in mechanism.groups.of(s)


def test_a_user_at_many_times():
    m = make("table")
    t = np.arange(N) * 2**20
    whole = m.release(np.full(N, 40), users=7, t=t, rng=3)
    assert whole[5] == m.release(40, users=7, t=int(t[5]), rng=3)
    assert np.array_equal(whole[::-1], m.release(np.full(N, 40), users=7, t=t[::-1], rng=3))


@large
@every
def test_release_is_the_same_for_any_number_of_threads(mechanism, restore_threads):
    """Parts end at multiples of nothing in particular: would catch a part that draws from its
    own beginning."""
    n = 200_001
    cells = some_cells(mechanism, n)
    pf.set_num_threads(1)
    alone = mechanism.release(cells, rng=8)
    for k in (2, 3, 6):
        pf.set_num_threads(k)
        assert pf.get_num_threads() == k
        assert np.array_equal(mechanism.release(cells, rng=8), alone)
        order = np.random.default_rng(k).permutation(n)
        assert np.array_equal(mechanism.release(cells[order], users=order, rng=8), alone[order])


def test_each_sampler_draws_for_its_own_purpose():
    """Two cells in a row, released by hand from the documented words.

    Would catch samplers that share draws: a table's word would then be one of a neighbour's
    geometric words."""
    pair, key, users = pf.complete(pf.Grid(1, 2)), make_key(11), range(40)
    m = pf.PPIM(pair, epsilon=1.0, sampler="table")
    released = m.release(np.zeros(40, int), rng=11)
    drawn = [np.uint64(words(key, u, 0, 0, chacha.TABLE)[0]) for u in users]
    assert released.tolist() == [
        pick(word, m.tables.arrays.cut, m.tables.arrays.alias, 0, m.tables.arrays.bits[0])
        for word in drawn
    ]
    m = pf.PPIM(pair, epsilon=1.0, sampler="geometric")
    released = m.release(np.zeros(40, int), rng=11)
    drawn = [
        words(key, u, 0, 2, chacha.GEOMETRIC) for u in users
    ]  # rank 1: word 0 the sign, word 2 the length
    z = [(1 if w[0] >> 63 else -1) * -math.log(((w[2] >> 11) + 0.5) * 2.0**-53) for w in drawn]
    assert released.tolist() == [int(x > 0.5) for x in z]


@large
@pytest.mark.parametrize("sampler", ["table", "geometric"])
def test_release_follows_the_exact_probabilities(sampler):
    """Frequencies against the oracle, chi-square with 8 degrees of freedom, a fixed seed; 40 is
    exceeded once in 300,000.

    Would catch draws whose bits are used twice (cone and radius from one word): uniform cells,
    wrong joint law."""
    h, n = pf.Grid(3, 3, cell_km=(1.0, 0.5)), 200_000
    body = naive.noise_body(h.lattice, h.scale, naive.complete(range(9)), "ppim")
    expected = n * naive.pmf_matrix(h.lattice, h.scale, range(9), body, 1.0)[1]
    found = np.bincount(
        pf.PPIM(pf.complete(h), epsilon=1.0, sampler=sampler).release(np.full(n, 1), rng=9),
        minlength=9,
    )
    assert ((found - expected) ** 2 / expected).sum() < 40


# Threads


@pytest.mark.parametrize("n", [0, 1, 7, 100])
@pytest.mark.parametrize("k", [1, 2, 5])
def test_ranges_cover_everything_once(n, k, restore_threads):
    pf.set_num_threads(k)
    hits = np.zeros(n, int)
    parts = []

    def part(start, stop):
        parts.append((start, stop))
        hits[start:stop] += 1

    threads.run_ranges(part, n, smallest=3)
    assert (hits == 1).all()
    assert len(parts) == max(1, min(k, n // 3))


def test_an_error_in_a_thread_is_raised(restore_threads):
    def part(start, stop):
        raise RuntimeError(f"part {start}")

    pf.set_num_threads(2)
    with pytest.raises(RuntimeError, match="part 0"):
        threads.run_ranges(part, 10, smallest=1)


@pytest.mark.parametrize(("value", "expected"), [("3", 3), ("0", None), ("many", None), ("", None)])
def test_number_of_threads_from_the_environment(monkeypatch, value, expected):
    monkeypatch.setenv("PGLP_FAST_THREADS", value)
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1, 2, 3, 4, 5, 6}, raising=False)
    assert threads._available() == (expected or 7)


# Errors

m = make("table")
G = m.graph
inside = pf.PPIM(G, epsilon=1.0, domain=pf.Domain(g, [0, 1]))


@pytest.mark.parametrize(
    "epsilon", [0, -1, -0.0, np.nan, np.inf, -np.inf, "one", "1.0", None, [1.0, 2.0], 1j]
)
@pytest.mark.parametrize("kind", [pf.PPIM, pf.PLM])
def test_epsilon_is_refused(epsilon, kind):
    with pytest.raises(pf.InvalidParameter, match="epsilon must be a") as caught:
        kind(G, epsilon=epsilon)
    assert isinstance(caught.value, pf.PGLPError)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("call", "kind", "match"),
    [
        (
            lambda: pf.PPIM(G, epsilon=1, sampler="alias"),
            pf.InvalidParameter,
            "must be one of 'auto', 'table', 'geometric'",
        ),
        (
            lambda: pf.PPIM(G, epsilon=1, sampler=None),
            pf.InvalidParameter,
            "sampler must be one of .* got None",
        ),
        (
            lambda: pf.PPIM(G, epsilon=1, calibration="local"),
            pf.InvalidParameter,
            "must be one of 'component', 'graph'",
        ),
        (
            lambda: pf.PPIM(G, epsilon=1, calibration=2),
            pf.InvalidParameter,
            "calibration must be one of .* got 2",
        ),
        (
            lambda: pf.PPIM(g, epsilon=1),
            pf.InvalidPolicy,
            "the first argument must be a PolicyGraph, got Grid",
        ),
        (
            lambda: pf.PPIM(G, epsilon=1, domain=[0, 1]),
            pf.InvalidDomain,
            "domain must be a Domain, got list",
        ),
        (
            lambda: pf.PPIM(G, epsilon=1, domain=pf.Domain(pf.Grid(2, 2), [0])),
            pf.PGLPError,
            "over different maps: 4 and 156 locations",
        ),
        (
            lambda: pf.PPIM(G, epsilon=1, domain=pf.Domain(pf.Grid(13, 12), [0])),
            pf.PGLPError,
            "map",
        ),
        (
            lambda: m.release([0], rng=-1),
            pf.InvalidParameter,
            "rng must be an integer at least 0, got -1",
        ),
        (lambda: m.release([0], rng=1.5), pf.InvalidParameter, "rng must be an integer, got 1.5"),
        (
            lambda: m.release([0], rng="seed"),
            pf.InvalidParameter,
            "rng must be an integer, got 'seed'",
        ),
        (lambda: m.release([0], rng=True), pf.InvalidParameter, "rng must be an integer"),
        (
            lambda: m.release([0], rng=np.random.default_rng(0)),
            pf.InvalidParameter,
            "rng must be an integer",
        ),
        (
            lambda: m.release([0, 156]),
            pf.InvalidLocation,
            r"cells\[1\] = 156 is not one of the 156 locations 0\.\.155",
        ),
        (lambda: m.release(-2), pf.InvalidLocation, "-2 is not one of the 156 locations"),
        (lambda: m.release([0.0]), pf.InvalidLocation, "cells must be integers, got dtype float64"),
        (lambda: m.release([[0, 1]]), pf.InvalidLocation, r"1-d array, got shape \(1, 2\)"),
        (lambda: inside.release([0, 2]), pf.InvalidDomain, r"cells\[1\] = 2 is outside the domain"),
        (lambda: inside.release([0, 156]), pf.InvalidLocation, r"cells\[1\] = 156 is not one of"),
        (
            lambda: inside.pmf(2),
            pf.InvalidDomain,
            "location 2 is outside the domain of 2 locations",
        ),
        (
            lambda: m.release([0, 1], users=[3, 3]),
            pf.InvalidParameter,
            "user 3 occurs twice at t = 0",
        ),
        (lambda: m.release([0, 1], users=3), pf.InvalidParameter, "user 3 occurs twice at t = 0"),
        (
            lambda: m.release([0, 1], users=3, t=[4, 4]),
            pf.InvalidParameter,
            "user 3 occurs twice at t = 4",
        ),
        (
            lambda: m.release([0], users=[1, 2]),
            pf.InvalidParameter,
            "users has 2 entries for 1 cells: give one for each cell",
        ),
        (
            lambda: m.release([0, 1], users=[5, -1]),
            pf.InvalidParameter,
            r"users\[1\] = -1 is not in 0\.\.",
        ),
        (
            lambda: m.release([0], users=[2**60]),
            pf.InvalidParameter,
            rf"users\[0\] = {2**60} is not in 0\.\.{2**60 - 1}",
        ),
        (
            lambda: m.release([0], users=np.array([2**63], np.uint64)),
            pf.InvalidParameter,
            r"= 9223372036854775808 is not",
        ),
        (lambda: m.release([0], users=[0.0]), pf.InvalidParameter, "users must be integers"),
        (
            lambda: m.release([0], users=[[0]]),
            pf.InvalidParameter,
            r"users must be one number or a 1-d array",
        ),
        (lambda: m.release([0], t=-1), pf.InvalidParameter, r"t\[0\] = -1 is not in 0\.\."),
        (
            lambda: m.release([0], t=2**56),
            pf.InvalidParameter,
            rf"t\[0\] = {2**56} is not in 0\.\.{2**56 - 1}",
        ),
        (
            lambda: m.release([0], t=0.5),
            pf.InvalidParameter,
            "t must be integers, got dtype float64",
        ),
        (
            lambda: m.release([0, 1], t=[0, 1, 2]),
            pf.InvalidParameter,
            "t has 3 entries for 2 cells",
        ),
        (
            lambda: pf.set_num_threads(0),
            pf.InvalidParameter,
            "n must be an integer at least 1, got 0",
        ),
        (lambda: pf.set_num_threads(2.0), pf.InvalidParameter, "n must be an integer, got 2.0"),
    ],
)
def test_refused(call, kind, match):
    with pytest.raises(kind, match=match) as caught:
        call()
    assert isinstance(caught.value, pf.PGLPError)
    assert isinstance(caught.value, ValueError)

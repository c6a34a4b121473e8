"""The generator against RFC 8439; draws as pure functions of (key, user, t)."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from cases import PURPOSES, block, large, times_of, users_of, words
from pglp_fast._kernels.base import chacha
from pglp_fast._util.validate import MAX_TIME
from pglp_fast.mechanisms.randomness import make_key

ZEROS = "00" * 32


VECTORS = {  # key, block counter, nonce, key stream
    "2.3.2": (bytes(range(32)).hex(), 1, "000000090000004a00000000",
              "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
              "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"),
    "A.1 #1": (ZEROS, 0, "00" * 12,
               "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
               "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586"),
    "A.1 #2": (ZEROS, 1, "00" * 12,
               "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed"
               "29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f"),
    "A.1 #3": ("00" * 31 + "01", 1, "00" * 12,
               "3aeb5224ecf849929b9d828db1ced4dd832025e8018b8160b82284f3c949aa5a"
               "8eca00bbb4a73bdad192b5c42f73f2fd4e273644c8b36125a64addeb006c13a0"),
    "A.1 #4": ("00ff" + "00" * 30, 2, "00" * 12,
               "72d54dfbf12ec44b362692df94137f328fea8da73990265ec1bbbea1ae9af0ca"
               "13b25aa26cb4a648cb9b9d1be65b2c0924a66c54d545ec1b7374f4872e99f096"),
    "A.1 #5": (ZEROS, 0, "00" * 11 + "02",
               "c2c64d378cd536374ae204b9ef933fcd1a8b2288b3dfa49672ab765b54ee27c7"
               "8a970e0e955c14f3a88e741b97c286f75f8fc299e8148362fa198a39531bed6d"),
}  # fmt: skip


def little_endian(hexadecimal):
    return np.frombuffer(bytes.fromhex(hexadecimal), "<u4").astype(np.uint32)


@pytest.mark.parametrize("vector", VECTORS.values(), ids=VECTORS.keys())
def test_rfc_8439(vector):
    key, counter, nonce, stream = vector
    assert block(little_endian(key), [counter, *little_endian(nonce)]).hex() == stream


KEY = make_key(12345)


def draw(key, users, times, log_width, purpose, start=0, stop=None):
    users, times = (
        np.atleast_1d(np.asarray(users, np.int64)),
        np.atleast_1d(np.asarray(times, np.int64)),
    )
    stop = max(users.size, times.size) if stop is None else stop
    out = np.zeros((stop - start, 1 << log_width), np.uint64)
    work = np.empty((4, chacha.LANES), np.uint32), np.empty((16, chacha.LANES), np.uint32)
    chacha.draw(key, users, times, start, stop, log_width, purpose, *work, out)
    return out.tolist()


@given(
    users_of,
    times_of,
    st.integers(0, 3),
    st.sampled_from(PURPOSES),
    st.integers(1, 11),
    st.randoms(use_true_random=False),
)
def test_a_draw_is_a_pure_function(first, t, log_width, purpose, n, random):
    """One run of users, the same one by one, in another order, in parts, with t as an array: always
    the documented words.

    Would catch a block shared wrongly at the start of a chunk that is no multiple of 8, and 32-bit
    counters."""
    expected = [words(KEY, first + i, t, log_width, purpose) for i in range(n)]
    ids, ts = [first + i for i in range(n)], [t] * n
    assert draw(KEY, first, t, log_width, purpose, 0, n) == expected
    assert draw(KEY, ids, t, log_width, purpose) == expected
    assert draw(KEY, first, ts, log_width, purpose) == expected
    assert draw(KEY, ids, ts, log_width, purpose) == expected
    cut = random.randrange(n)
    for who in (first, ids):
        for when in (t, ts):
            assert draw(KEY, who, when, log_width, purpose, cut, n) == expected[cut:]
    order = random.sample(range(n), n)
    assert draw(KEY, [ids[k] for k in order], t, log_width, purpose) == [expected[k] for k in order]
    other = [random.randrange(MAX_TIME) for _ in range(n)]
    expected = [words(KEY, u, w, log_width, purpose) for u, w in zip(ids, other)]
    for who in (first, ids):
        assert draw(KEY, who, other, log_width, purpose) == expected
        assert draw(KEY, who, other, log_width, purpose, cut, n) == expected[cut:]


@pytest.mark.parametrize("n", [1, 40, pytest.param(chacha.CHUNK, marks=large)])
@pytest.mark.parametrize("log_width", range(4))
def test_no_word_serves_two(n, log_width):
    """Users 3, 4, ..., two times, two purposes, two keys: all words differ (by chance two agree
    once in 10**12 runs).

    Would catch draws that overlap in a block, and a purpose or the high half of t that does not
    reach the state."""
    seen = [
        word
        for key in (KEY, make_key(0))
        for t in (0, 1, 2**32, 2**55)
        for purpose in PURPOSES
        for row in draw(key, 3, t, log_width, purpose, 0, n)
        for word in row
    ]
    assert len(set(seen)) == len(seen) == 16 * n << log_width


def test_one_word_is_that_of_a_batch():
    key = np.arange(8, dtype=np.uint32)
    counters, scratch = (np.empty((n, chacha.LANES), np.uint32) for n in (4, 16))
    out = np.empty((chacha.CHUNK, 1), np.uint64)
    for user, t, purpose in ((0, 0, 1), (7, 5, 1), (8, 2**40, 2), (2**59 + 3, 1, 1)):
        users, times = np.array([user, 1]), np.array([t, t])
        chacha.draw(key, users, times, 0, 1, 0, purpose, counters, scratch, out)
        assert chacha.draw_one(key, user, t, purpose) == out[0, 0]

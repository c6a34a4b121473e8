"""Where the generator's key comes from (spec section 9).

Without a seed, a key is 32 fresh bytes from the operating system, and nobody, not even the caller,
ever sees it. A seed makes a run reproducible; whoever knows the seed can subtract the noise, so a
seeded release is for research, not for people."""

import hashlib
import os

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pglp_fast._kernels.base.bits import first_repeat
from pglp_fast._util.validate import MAX_TIME, MAX_USER, integers, whole
from pglp_fast.errors import InvalidParameter

_SEED_BITS = 8192  # far more than the 256 of a key, and still written as decimal digits


def make_key(rng: int | None) -> NDArray[np.uint32]:
    """Eight words of ChaCha20 key: fresh from the operating system, or from a non-negative
    integer seed of up to 8,192 bits."""
    if rng is None:
        raw = os.urandom(32)
    else:
        seed = whole(rng, "rng", 0)
        if seed.bit_length() > _SEED_BITS:
            raise InvalidParameter(f"rng has more than {_SEED_BITS} bits: take a smaller seed")
        raw = hashlib.sha256(b"pglp_fast seed %d" % seed).digest()
    return np.frombuffer(raw, dtype="<u4").astype(np.uint32)


def _counter(values: ArrayLike, name: str, n: int, limit: int) -> NDArray[np.int64]:
    array = integers(values, name, InvalidParameter)
    if array.ndim == 1 and array.shape != (n,):
        raise InvalidParameter(
            f"{name} has {array.size} entries for {n} cells: give one for each cell"
        )
    if array.ndim > 1:
        raise InvalidParameter(f"{name} must be one number or a 1-d array, got shape {array.shape}")
    flat = array.reshape(-1)
    if flat.size and (flat.min() < 0 or flat.max() >= limit):
        at = int(np.flatnonzero((flat < 0) | (flat >= limit))[0])
        raise InvalidParameter(f"{name}[{at}] = {flat[at]} is not in 0..{limit - 1}")
    return flat.astype(np.int64)


def _first_repeat(users: NDArray[np.int64], times: NDArray[np.int64]) -> int:
    """Position of a (user, t) that occurred before, or -1.

    One t and users that are not far-flung cost one pass over a bitmap.
    """
    if times.size == 1 and users.max() < 64 * users.size + 1024:
        return int(first_repeat(users, np.zeros(int(users.max()) // 64 + 1, np.uint64)))
    when = np.broadcast_to(times, users.shape)
    order = np.lexsort((users, when))
    u, t = users[order], when[order]
    same = np.flatnonzero((u[1:] == u[:-1]) & (t[1:] == t[:-1]))
    return int(order[same[0] + 1]) if same.size else -1


def draw_counters(
    users: ArrayLike | None, t: ArrayLike, n: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(users, times) for n draws, each of length n or 1: a single user u stands for u, u+1, ..., a
    single t for all.

    No (user, t) may occur twice: one draw must never serve two inputs, for their difference would
    show through."""
    times = _counter(t, "t", n, MAX_TIME)
    if users is None:
        return np.zeros(1, np.int64), times
    who = _counter(users, "users", n, MAX_USER)
    if who.size == 1 and n > 1:
        who = np.full(n, who[0])
    if n > 1 and who[-1] - who[0] == n - 1 and bool((who[1:] > who[:-1]).all()):
        return who[:1], times  # consecutive: eight of them share a block of the generator
    if n > 1:
        at = _first_repeat(who, times)
        if at >= 0:
            raise InvalidParameter(
                f"user {who[at]} occurs twice at t = {times[at if times.size > 1 else 0]} (again "
                f"at position {at}): "
                "one draw must not serve two inputs; number the requests, or give each its own t"
            )
    return who, times

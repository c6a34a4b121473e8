"""ChaCha20 (RFC 8439) as a counter-based generator.

The draw for (key, user, t) is a pure function of the three. State words 12 and 13 hold the block
number, 14 the low half of t, 15 the high half of t and, in its top byte, what the draw is for; so
the two samplers never share a draw. A block has eight 64-bit words. A draw of ``WORDS`` words takes
its part of block ``user * WORDS // 8``: neighbours in ``user`` share a block, and a run of
consecutive users costs an eighth of a block each.

Lanes are blocks, side by side: the loop over lanes is what LLVM vectorises.
"""

import numpy as np

from .jit import bare, kernel

CHUNK = 256  # draws made at once; a run of them may touch one block more
LANES = CHUNK + 1
TABLE, GEOMETRIC = 1, 2  # what a draw is for

_C0, _C1, _C2, _C3 = (
    np.uint32(0x61707865),
    np.uint32(0x3320646E),
    np.uint32(0x79622D32),
    np.uint32(0x6B206574),
)


@bare
def _rotate(x, n):
    return np.uint32((x << np.uint32(n)) | (x >> np.uint32(32 - n)))


@bare
def _quarter(a, b, c, d):
    a = np.uint32(a + b)
    d = _rotate(np.uint32(d ^ a), 16)
    c = np.uint32(c + d)
    b = _rotate(np.uint32(b ^ c), 12)
    a = np.uint32(a + b)
    d = _rotate(np.uint32(d ^ a), 8)
    c = np.uint32(c + d)
    b = _rotate(np.uint32(b ^ c), 7)
    return a, b, c, d


@bare
def blocks(key, counters, out, n):
    """One ChaCha20 block in each of the first n lanes.

    ``counters``: (4, L) state words 12..15; ``out``: (16, L); uint32.
    """
    for i in range(n):
        out[0, i], out[1, i], out[2, i], out[3, i] = _C0, _C1, _C2, _C3
        for k in range(8):
            out[4 + k, i] = key[k]
        for k in range(4):
            out[12 + k, i] = counters[k, i]
    for _ in range(10):
        for i in range(n):
            x0, x4, x8, xc = _quarter(out[0, i], out[4, i], out[8, i], out[12, i])
            x1, x5, x9, xd = _quarter(out[1, i], out[5, i], out[9, i], out[13, i])
            x2, x6, xa, xe = _quarter(out[2, i], out[6, i], out[10, i], out[14, i])
            x3, x7, xb, xf = _quarter(out[3, i], out[7, i], out[11, i], out[15, i])
            out[0, i], out[5, i], out[10, i], out[15, i] = _quarter(x0, x5, xa, xf)
            out[1, i], out[6, i], out[11, i], out[12, i] = _quarter(x1, x6, xb, xc)
            out[2, i], out[7, i], out[8, i], out[13, i] = _quarter(x2, x7, x8, xd)
            out[3, i], out[4, i], out[9, i], out[14, i] = _quarter(x3, x4, x9, xe)
    for i in range(n):
        out[0, i] += _C0
        out[1, i] += _C1
        out[2, i] += _C2
        out[3, i] += _C3
        for k in range(8):
            out[4 + k, i] += key[k]
        for k in range(4):
            out[12 + k, i] += counters[k, i]


@bare
def _set_counter(counters, lane, block, t, purpose):
    counters[0, lane] = np.uint32(block & 0xFFFFFFFF)
    counters[1, lane] = np.uint32(block >> 32)
    counters[2, lane] = np.uint32(t & 0xFFFFFFFF)
    counters[3, lane] = np.uint32((t >> 32) | (purpose << 24))


@bare
def _word(scratch, at, lane):
    """The 64-bit word at state words at, at + 1 of a lane, little end first as in the RFC."""
    return np.uint64(scratch[at, lane]) | (np.uint64(scratch[at + 1, lane]) << np.uint64(32))


@bare
def draw(key, users, times, start, stop, log_width, purpose, counters, scratch, out):
    """Fill ``out[i - start, :width]`` with the 64-bit words of (user, t) number i, start <= i <
    stop <= start + CHUNK.

    width = 2**log_width words a draw (1, 2, 4 or 8). A single ``users[0]`` stands for users[0],
    users[0] + 1, ... and a single ``times[0]`` for one t for all. ``counters`` (4, LANES) and
    ``scratch`` (16, LANES) are work space."""
    shift = 3 - log_width  # a block serves 2**shift users
    mask = (1 << shift) - 1
    width = 1 << log_width
    consecutive, one_time = users.shape[0] == 1, times.shape[0] == 1
    n = stop - start
    run = consecutive and one_time  # neighbours share blocks
    first_user = users[0] + start if consecutive else start
    first, lanes = first_user >> shift, n
    if run:
        lanes = ((first_user + n - 1) >> shift) - first + 1
        for lane in range(lanes):
            _set_counter(counters, lane, first + lane, times[0], purpose)
    else:
        for i in range(n):
            user = first_user + i if consecutive else users[start + i]
            t = times[0] if one_time else times[start + i]
            _set_counter(counters, i, user >> shift, t, purpose)
    blocks(key, counters, scratch, lanes)
    for i in range(n):
        user = np.uint64(first_user + i if consecutive else users[start + i])
        lane = np.uint32(i)
        if run:
            lane = np.uint32((user >> np.uint64(shift)) - np.uint64(first))
        at = np.uint32(user & np.uint64(mask)) << (log_width + 1)
        for w in range(width):
            out[i, w] = _word(scratch, at + 2 * w, lane)


@kernel
def draw_one(key, user, t, purpose):
    """The one 64-bit word of (user, t): ``draw`` of width 1."""
    counters, scratch = np.empty((4, 1), np.uint32), np.empty((16, 1), np.uint32)
    _set_counter(counters, 0, user >> 3, t, purpose)
    blocks(key, counters, scratch, 1)
    return _word(scratch, (user & 7) << 1, 0)

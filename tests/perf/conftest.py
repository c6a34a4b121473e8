"""Running times as ratios within one run: machines differ and are noisy, ratios say something."""

import hashlib
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

import pglp_fast as pf


def _seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


@pytest.fixture
def ratio(benchmark):
    """ratio(ours, theirs): best time of one over best time of the other, taken in turns; shown by pytest-benchmark."""

    def measure(ours: Callable[[], object], theirs: Callable[[], object], rounds: int = 5) -> float:
        ours(), theirs()
        # three spells, a pause apart: a busy neighbour only ever makes things slower
        pairs = []
        for _ in range(3):
            pairs += [(_seconds(ours), _seconds(theirs)) for _ in range(rounds)]
            time.sleep(0.2)
        value = min(a for a, _ in pairs) / min(b for _, b in pairs)
        benchmark.extra_info["ratio"] = round(value, 4)
        benchmark.pedantic(ours, rounds=1)
        return value

    return measure


@pytest.fixture
def two_cores():
    """Two threads, on a machine where two that share nothing (hashing, outside the interpreter's lock) run side by side."""
    data = bytes(1 << 25)

    def hashing(_):
        return hashlib.sha256(data).digest()

    before = pf.get_num_threads()
    if before < 2:
        pytest.skip("one core")
    with ThreadPoolExecutor(2) as pool:
        one = min(_seconds(lambda: hashing(0)) for _ in range(5))
        two = min(_seconds(lambda: list(pool.map(hashing, (0, 1)))) for _ in range(5))
    if two > 1.3 * one:
        pytest.skip(f"somebody else is using the cores: two threads take {two / one:.1f} times as long as one")
    pf.set_num_threads(2)
    yield
    pf.set_num_threads(before)

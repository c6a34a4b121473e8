"""Running times as ratios within one run: machines differ and are noisy, ratios say something."""

import time
from collections.abc import Callable

import pytest


def _seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


@pytest.fixture
def ratio(benchmark):
    """ratio(ours, theirs): best time of one over best time of the other, taken in turns; shown by pytest-benchmark."""

    def measure(ours: Callable[[], object], theirs: Callable[[], object], rounds: int = 5) -> float:
        ours(), theirs()
        pairs = [(_seconds(ours), _seconds(theirs)) for _ in range(rounds)]
        value = min(a for a, _ in pairs) / min(b for _, b in pairs)
        benchmark.extra_info["ratio"] = round(value, 4)
        benchmark.pedantic(ours, rounds=1)
        return value

    return measure

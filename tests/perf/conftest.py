"""Running times as ratios within one run: machines differ and are noisy, ratios say something.

Each test states the ratio that is promised. A table at the end shows what was measured; only
`NOISE` times the promised ratio fails, which no busy neighbour explains."""

import hashlib
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numba
import pytest

import pglp_fast as pf
from benchmarks.workloads import scalar_calls

NOISE = 3.0


def pytest_collection_modifyitems(items):
    for item in items:
        if "perf" in item.path.parts and numba.config.DISABLE_JIT:
            item.add_marker(pytest.mark.skip(reason="times compiled code"))


def _seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


@pytest.fixture
def ratio():
    """ratio(ours, theirs): best time of one over best time of the other, taken in turns."""

    def measure(ours: Callable[[], object], theirs: Callable[[], object], rounds: int = 3) -> float:
        ours(), theirs()
        # three spells, a pause apart: a busy neighbour only ever makes things slower
        pairs = []
        for _ in range(3):
            pairs += [(_seconds(ours), _seconds(theirs)) for _ in range(rounds)]
            time.sleep(0.2)
        return min(a for a, _ in pairs) / min(b for _, b in pairs)

    return measure


@pytest.fixture
def promise(request, record_property):
    """promise(value, most): what was measured, and the most that is promised."""

    def check(value: float, most: float, what: str = "") -> None:
        name = request.node.name.removeprefix("test_") + (f": {what}" if what else "")
        record_property("promise", (name, float(value), float(most)))
        assert value <= NOISE * most, f"{value:.3g} where {most:.3g} is promised"

    return check


def pytest_terminal_summary(terminalreporter):
    rows = [
        kept
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", "") == "call"
        for name, kept in report.user_properties
        if name == "promise"
    ]
    if not rows:
        return
    terminalreporter.section("promised ratios")
    terminalreporter.write_line(f"{'measured':>10} {'promised':>10}")
    for name, value, most in rows:
        beyond = "" if value <= most else f"  ({value / most:.1f} times the promise)"
        terminalreporter.write_line(f"{value:10.3g} {most:10.3g}  {name}{beyond}")


@pytest.fixture
def in_calls(ratio):
    """in_calls(work, n): one of the n pieces of some work, in scalar calls of NumPy's
    ``default_rng().laplace(size=2)``, taken in turns: a processor's speed changes by the minute."""

    def measure(work: Callable[[], object], n: float, rounds: int = 3) -> float:
        return ratio(work, lambda: scalar_calls(20_000), rounds) * 20_000 / n

    return measure


@pytest.fixture
def two_cores():
    """Two threads, on a machine where two that share nothing (hashing, outside the interpreter's
    lock) run side by side."""
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
        times = f"two threads take {two / one:.1f} times as long as one"
        pytest.skip(f"somebody else is using the cores: {times}")
    pf.set_num_threads(2)
    yield
    pf.set_num_threads(before)

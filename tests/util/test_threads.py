"""Work that goes on in threads while its results are used."""

import threading
import time

import pytest

from pglp_fast._util import threads


@pytest.mark.parametrize("n", [0, 1, 2, 3, 50])
@pytest.mark.parametrize("used", [1, 2, 8])
def test_map_ahead_keeps_the_order_and_holds_few(n, used, monkeypatch):
    """Catches: results out of order or lost at the end, and a reader that runs through all items
    before the first result is taken."""
    monkeypatch.setattr(threads, "_threads", used)
    begun = []

    def items():
        for k in range(n):
            begun.append(k)
            yield k

    seen = []
    for value in threads.map_ahead(lambda k: (k * k, threading.get_ident()), items()):
        seen.append(value)
        assert len(begun) <= len(seen) + 4
    assert [square for square, _ in seen] == [k * k for k in range(n)]
    if n < 2 or used == 1:
        assert {ident for _, ident in seen} <= {threading.get_ident()}


def test_map_ahead_passes_errors_on(monkeypatch):
    monkeypatch.setattr(threads, "_threads", 2)
    results = threads.map_ahead(lambda k: 1 // k, [1, 1, 0, 1])
    assert [next(results), next(results)] == [1, 1]
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_ranges_within_ranges_do_not_wait_for_each_other(monkeypatch):
    """A thread of the pool that asked the pool for more threads would wait for ever."""
    monkeypatch.setattr(threads, "_threads", 2)
    seen = []

    def inner(start, stop):
        seen.extend(range(start, stop))

    def outer(start, stop):
        for _ in range(start, stop):
            threads.run_ranges(inner, 8, smallest=1)

    threads.run_ranges(outer, 6, smallest=1)
    assert sorted(seen) == sorted(list(range(8)) * 6)


def test_the_same_threads_serve_every_call(monkeypatch):
    monkeypatch.setattr(threads, "_threads", 2)
    monkeypatch.setattr(threads, "_pool", threads._Pool())
    idents = set()
    for _ in range(50):
        threads.run_ranges(lambda start, stop: idents.add(threading.get_ident()), 4, smallest=1)
    assert len(idents - {threading.get_ident()}) <= 2


def test_all_parts_have_ended_when_one_fails(monkeypatch):
    """What is still written to after an error would be changed behind its owner's back."""
    monkeypatch.setattr(threads, "_threads", 2)
    ended = threading.Event()

    def part(start, stop):
        if start == 1:
            time.sleep(0.1)
            ended.set()
        else:
            raise ValueError("the first half")

    with pytest.raises(ValueError, match="first half"):
        threads.run_ranges(part, 2, smallest=1)
    assert ended.is_set()

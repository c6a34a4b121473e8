"""What is known of persons between batches: those met lately in memory, the others on disk.

A person who comes back goes on exactly where it was: its state is kept to the last bit. The file
tells what an adversary believes of people, not the key of the noise; it lies in a folder of its
owner's, and is removed at the end."""

import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pglp_fast.errors import InvalidState
from pglp_fast.traces.engine import State
from pglp_fast.traces.state_rows import from_bytes, join_users, take_users, to_bytes

Ints = NDArray[np.int64]
_FACTS = 8  # numbers that are kept of a person, besides its state
_AT_ONCE = 500  # persons of a query


class Known(NamedTuple):
    """Persons, ascending by number.

    Attributes
    ----------
    facts : of each person
        its number, which keys the noise; another number of its label, for two persons must not
        share one, and which is the one in ledgers; the last step that was decided on, -1 before the
        first; what was released last; the batch that had the person last; policy and epsilon of
        the last release; 1 if the last step was beyond the budget
    state : what the adversary knows of each
    """

    facts: Ints
    state: State

    @property
    def number(self) -> Ints:
        return self.facts[:, 0]

    @property
    def check(self) -> Ints:
        return self.facts[:, 1]

    @property
    def step(self) -> Ints:
        return self.facts[:, 2]

    @property
    def cell(self) -> Ints:
        return self.facts[:, 3]

    @property
    def met(self) -> Ints:
        return self.facts[:, 4]

    @property
    def policy(self) -> Ints:
        return self.facts[:, 5]

    @property
    def epsilon(self) -> NDArray[np.float64]:
        return self.facts[:, 6].view(np.float64)

    @property
    def over(self) -> Ints:
        return self.facts[:, 7]

    def take(self, rows: Ints) -> "Known":
        return Known(self.facts[rows], take_users(self.state, rows))


def _joined(some: list[Known]) -> Known:
    """All of them, by number."""
    whole = Known(np.concatenate([k.facts for k in some]), join_users([k.state for k in some]))
    return whole.take(np.argsort(whole.number))


class PersonStore:
    """Persons by number; at most so many of them in memory between batches.

    Parameters
    ----------
    first : State
        Of one person before the first release.
    resident : int
        Persons in memory.
    """

    def __init__(self, first: State, resident: int):
        self._first, self._resident, self._batch = first, resident, 0
        self._here = Known(
            np.empty((0, _FACTS), np.int64), take_users(first, np.empty(0, np.int64))
        )
        self._folder = tempfile.TemporaryDirectory(prefix="pglp_fast-persons-")
        self._disk = sqlite3.connect(Path(self._folder.name) / "persons.db")
        self._disk.executescript(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
            "CREATE TABLE person (number INTEGER PRIMARY KEY, facts BLOB, state BLOB)"
        )
        self.on_disk = 0

    def take(self, number: Ints, check: Ints) -> Known:
        """These persons (ascending), out of the store; new ones as they are before they start."""
        self._batch += 1
        mine = np.isin(self._here.number, number)
        found = [self._here.take(np.flatnonzero(mine))]
        self._here = self._here.take(np.flatnonzero(~mine))
        missing = np.setdiff1d(number, found[0].number)
        if missing.size and self.on_disk:
            found.append(self._back(missing))
            missing = np.setdiff1d(missing, found[-1].number)
        if missing.size:
            facts = np.full((len(missing), _FACTS), -1)
            facts[:, 0], facts[:, 1] = missing, check[np.searchsorted(number, missing)]
            found.append(Known(facts, take_users(self._first, np.zeros(len(facts), np.int64))))
        known = _joined(found)
        if (known.check != check).any():
            raise InvalidState(
                "two persons got the same number by chance: start again, with another seed if the "
                "plan has one"
            )
        return known

    def put(self, known: Known) -> None:
        """Persons back, as they are now."""
        known.met[:] = self._batch
        here = _joined([self._here, known])
        over = len(here.facts) - self._resident
        if over > 0:
            order = np.argsort(here.met, kind="stable")
            self._evict(here.take(np.sort(order[:over])))
            here = here.take(np.sort(order[over:]))
        self._here = here

    def _evict(self, known: Known) -> None:
        facts = (row.tobytes() for row in known.facts)
        rows = zip(known.number.tolist(), facts, to_bytes(known.state))
        self._disk.executemany("INSERT INTO person VALUES (?, ?, ?)", rows)
        self.on_disk += len(known.facts)

    def _back(self, number: Ints) -> Known:
        """Those of the persons that are on disk, taken from it."""
        rows: list[tuple[bytes, bytes]] = []
        for first in range(0, len(number), _AT_ONCE):
            some = number[first : first + _AT_ONCE].tolist()
            marks = f"({','.join('?' * len(some))})"
            rows += self._disk.execute(
                f"SELECT facts, state FROM person WHERE number IN {marks}", some
            )
            self._disk.execute(f"DELETE FROM person WHERE number IN {marks}", some)
        self.on_disk -= len(rows)
        return self._of_rows(rows)

    def _of_rows(self, rows: list[tuple[bytes, bytes]]) -> Known:
        facts = np.frombuffer(b"".join(f for f, _ in rows), np.int64).reshape(-1, _FACTS)
        return _joined([Known(facts, from_bytes([s for _, s in rows], self._first))])

    def all(self) -> Iterator[Known]:
        """Everybody, some at a time."""
        yield self._here
        cursor = self._disk.execute("SELECT facts, state FROM person")
        while rows := cursor.fetchmany(_AT_ONCE * 16):
            yield self._of_rows(rows)

    def close(self) -> None:
        self._disk.close()
        self._folder.cleanup()

"""Persons of a job: each has one number, whatever files, batches and neighbours its rows have.

The number keys a person's noise. It is a function of the job's key and the person's label alone: so
what is released about somebody does not depend on who else is in the table, nor on the order of
rows or files, and numbers tell nothing to whoever has no key."""

import hashlib
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from pglp_fast.errors import InvalidState
from pglp_fast.io.labels import Coded
from pglp_fast.traces.ledger import number_of

_BITS = 60  # of a number


class Persons:
    """Persons as they are met: coded 0, 1, ... as they first appear."""

    def __init__(self) -> None:
        self._code: dict[str, int] = {}
        self._met: tuple[Any, NDArray[np.int64]] = None, np.empty(0, np.int64)

    @property
    def labels(self) -> list[str]:
        """By code."""
        return list(self._code)

    def __len__(self) -> int:
        return len(self._code)

    def codes(self, user: Coded) -> NDArray[np.int64]:
        """Code of the person of each row; 7 and "7" are one person."""
        source, known = self._met  # labels of one source keep their codes from batch to batch
        if source is not user.source:
            known = np.empty(0, np.int64)
        fresh = user.labels[len(known) :].tolist()
        more = [self._code.setdefault(str(label), len(self._code)) for label in fresh]
        known = np.concatenate([known, np.array(more, np.int64)])
        self._met = user.source, known
        return known[user.codes]


def persons_key(seed: int) -> bytes:
    """What keys the numbers of persons."""
    return hashlib.sha256(b"pglp_fast persons %d" % seed).digest()


def person_number(key: bytes, label: str) -> int:
    """The number of a person."""
    digest = hashlib.blake2b(label.encode(), key=key, digest_size=8).digest()
    return int.from_bytes(digest, "big") >> (64 - _BITS)


class Numbers:
    """Numbers of the persons of rows, each worked out once for a source of labels."""

    def __init__(self, seed: int):
        self._key, self._source = persons_key(seed), cast(Any, None)
        self._known = np.empty((0, 2), np.int64)

    def __call__(self, user: Coded) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(number, check) of the person of each row; 7 and "7" are one person."""
        number, check = self._of_labels(user)[user.codes].T
        return number, check

    def listed(self, user: Coded) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(number of the person of each row; number and check of all persons who have one)."""
        known = self._of_labels(user)
        here = np.zeros(len(known), np.bool_)
        here[user.codes] = True
        return known[:, 0][user.codes], known[here]

    def _of_labels(self, user: Coded) -> NDArray[np.int64]:
        """(number, check) of each label."""
        if user.source is not self._source:
            self._source, self._known = user.source, np.empty((0, 2), np.int64)
        fresh = [str(label) for label in user.labels[len(self._known) :].tolist()]
        # another number tells persons apart who share the first by chance
        more = [(person_number(self._key, x), number_of(x)) for x in fresh]
        self._known = np.concatenate([self._known, np.array(more, np.int64).reshape(-1, 2)])
        return self._known


def tell_apart(pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    """(number, check) of the persons among these, ascending; an error if two share a number."""
    distinct = np.unique(pairs, axis=0)
    if (distinct[1:, 0] == distinct[:-1, 0]).any():
        raise InvalidState(
            "two persons got the same number by chance: start the job again, with another seed if "
            "it has one"
        )
    return distinct


def ledger_numbers(person: NDArray[np.int64], known: NDArray[np.int64]) -> NDArray[np.int64]:
    """Numbers in ledgers, which are the checks, of persons by their numbers; ``known``: as
    ``tell_apart`` has them."""
    return np.asarray(known[np.searchsorted(known[:, 0], person), 1])

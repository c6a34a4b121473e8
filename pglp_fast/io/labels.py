"""Columns of labels (users, trajectories, venues, categories) as numbers."""

import math
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from itertools import count
from numbers import Number
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pglp_fast.errors import InvalidTable


@dataclass(frozen=True)
class Coded:
    """A column of labels: row i is ``labels[codes[i]]``; code -1 means none.

    Labels are numbered as they first appear, in their ``canonical`` spelling. In a text file, a
    column in which every label is a whole number as Python would print it has int64 labels ("7" is
    one, and so is "7.0"; "007" is not)."""

    codes: NDArray[np.int32]
    source: "Labeller"

    @property
    def labels(self) -> NDArray[Any]:
        """The labels, by code."""
        return self.source.labels()

    @classmethod
    def of(cls, values: ArrayLike) -> "Coded":
        """From an array of whole numbers or of text; a list may have both, 7 being "7"."""
        given = values if hasattr(values, "dtype") else np.array(values, object)
        array = np.asarray(given).reshape(-1)
        if array.dtype.kind == "O":
            array = _alike(array)
        if array.dtype.kind in "iu":
            array, source = array.astype(np.int64), Labeller("integer")
        elif array.dtype.kind in "OUT":
            source = Labeller("text")
        else:
            raise InvalidTable(f"labels must be whole numbers or text, got dtype {array.dtype}")
        # rows of one user mostly come together: each run is looked up once
        fresh = np.ones(len(array), np.bool_)
        fresh[1:] = array[1:] != array[:-1]
        return cls(source.number(array[fresh].tolist(), np.cumsum(fresh) - 1), source)

    def values(self) -> NDArray[Any]:
        """The label of each row (None for none)."""
        labels = self.labels
        if not len(self.codes) or self.codes.min() >= 0:
            return np.asarray(labels[self.codes])
        with_none: NDArray[Any] = np.array([*labels.tolist(), None], object)
        return np.asarray(with_none[self.codes])

    def __getitem__(self, rows: Any) -> "Coded":
        return replace(self, codes=np.ascontiguousarray(self.codes[rows]))

    def __len__(self) -> int:
        return len(self.codes)


class Labeller:
    """Numbers labels as they first appear, over any number of batches.

    ``kind``: "integer" (int64), "text", or "field" (of a text file: numbers if all of them are).
    """

    def __init__(self, kind: str):
        self.kind = kind
        self._codes: defaultdict[Any, int] = defaultdict(count().__next__)
        self._made: NDArray[Any] = np.empty(0, np.int64)

    def number(self, labels: list[Any], which: NDArray[Any]) -> NDArray[np.int32]:
        """Codes of rows that have label ``which`` of ``labels``; -1 stays."""
        codes = np.full(len(labels) + 1, -1, np.int32)
        names: Iterable[Any] = labels if self.kind == "integer" else map(canonical, labels)
        codes[:-1] = np.fromiter(map(self._codes.__getitem__, names), np.int32, len(labels))
        return np.asarray(codes[which])

    def labels(self) -> NDArray[Any]:
        """All labels so far, by code."""
        if len(self._made) != len(self._codes):
            whole = self.kind == "integer" or (
                self.kind == "field" and all(map(_is_plain_integer, self._codes))
            )
            self._made = np.array([int(v) for v in self._codes] if whole else list(self._codes))
        return self._made


def _is_plain_integer(text: str) -> bool:
    digits = text[1:] if text[:1] == "-" else text
    return digits.isascii() and digits.isdigit() and len(digits) < 19 and str(int(text)) == text


_ODD = re.compile(r"[^!-~]|\.0+\Z")  # what is not plain ASCII, and 7.0
_EDGES = re.compile(r"\A[\s\ufeff]+|[\s\ufeff]+\Z")
_MISSING = ("<NA>", "NaT", "nan", "NaN")  # as text, of objects that are none
_FRACTION = re.compile(r"(-?[0-9]+)\.0+")


def canonical(text: str) -> str:
    """The one spelling of a label: without white space or a byte order mark around it, in Unicode's
    form NFC, and 7.0 as 7.

    What differs in this alone mostly is one person, as programs write it down; were it two, they
    would share one budget, which hurts nobody's privacy."""
    if not _ODD.search(text):
        return text
    text = unicodedata.normalize("NFC", _EDGES.sub("", text))
    whole = _FRACTION.fullmatch(text)
    if whole is None:
        return text
    return "0" if whole[1] == "-0" else whole[1]


EXACT = 53  # bits of a whole number that a double surely holds


def label_name(value: Any) -> str:
    """What a label is called, whatever type it has: 7, 7.0, "7" and b"7" are one.

    Columns of a type are named at once, by casts that give the same. A ValueError where nothing
    says which label is meant."""
    if isinstance(value, str):
        return canonical(str.__str__(value))
    if isinstance(value, bytes | bytearray | memoryview):
        return canonical(bytes(value).decode())
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, int | np.integer):
        return str(int(value))
    if isinstance(value, float | np.floating):
        return str(_whole(value, 2.0 ** min(EXACT, np.finfo(type(value)).nmant + 1)))
    if isinstance(value, Decimal | Fraction):
        return str(_whole(value, math.inf))
    if isinstance(value, UUID):
        return str(value)
    kind: Any = type(value)
    own = kind.__str__ is not object.__str__ or kind.__repr__ is not object.__repr__
    if not own or isinstance(value, Number | Iterable):
        raise ValueError(f"{value!r} is neither a whole number nor text")
    return canonical(str(value))


def person_name(value: Any) -> str:
    """The name of a person's label; a ValueError where it is nobody's."""
    if value is None or (not isinstance(value, str) and str(value) in _MISSING):
        raise ValueError(f"{value} is nobody's name")
    name = label_name(value)
    if not name:
        raise ValueError(f"{value!r} is nobody's name")
    return name


def person_codes(values: Iterable[Any]) -> NDArray[np.int64]:
    """A number for each person, the same for the same name. A ValueError as ``person_name``."""
    whole = isinstance(values, np.ndarray) and values.dtype.kind in "iu"
    names: Any = values if whole else np.array([person_name(v) for v in values], object)
    return np.unique(names, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _whole(value: Any, most: float) -> int:
    if not math.isfinite(value) or value != int(value):
        raise ValueError(f"{value} is not a whole number")
    if abs(value) > most:
        raise ValueError(f"{value} is too large for its type to tell it from its neighbours")
    return int(value)


def _alike(values: NDArray[Any]) -> NDArray[Any]:
    """Objects as whole numbers, if all are, or else as text."""
    kinds = set(map(type, values.tolist()))
    if kinds <= {str}:
        return values
    try:
        if all(issubclass(kind, int | np.integer) and kind is not bool for kind in kinds):
            return values.astype(np.int64)
        return np.array([label_name(v) for v in values], object)
    except (ValueError, OverflowError) as error:
        raise InvalidTable(f"labels must be whole numbers or text: {error}") from None

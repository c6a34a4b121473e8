"""Columns of labels (users, trajectories, venues, categories) as numbers."""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._kernels import labels as kernels
from ..errors import InvalidTable

Spans = NDArray[np.int64]
Octets = NDArray[np.uint8]


@dataclass(frozen=True)
class Coded:
    """A column of labels: row i is ``labels[codes[i]]``; code -1 means none.

    Labels are numbered as they first appear. In a text file, a column in which every label is a whole number as Python would
    print it has int64 labels ("7" is one, "007" is not).
    """

    codes: NDArray[np.int32]
    source: "Labeller"

    @property
    def labels(self) -> NDArray[Any]:
        """The labels, by code."""
        return self.source.labels()

    @classmethod
    def of(cls, values: ArrayLike) -> "Coded":
        """From an array of whole numbers or of text."""
        array = np.asarray(values).reshape(-1)
        if array.dtype.kind in "iu":
            source = Labeller("integer")
            return cls(source.number_integers(array.astype(np.int64)), source)
        if array.dtype.kind in "OUT" and all(isinstance(v, str) for v in array):
            source = Labeller("text")
            encoded = np.char.encode(array.astype(str), "utf-8")
            width = encoded.dtype.itemsize
            begin = width * np.arange(len(encoded), dtype=np.int64)
            spans = np.stack([begin, begin + np.char.str_len(encoded)], axis=1)
            return cls(source.number(np.ascontiguousarray(encoded).view(np.uint8).copy(), spans), source)
        raise InvalidTable(f"labels must be whole numbers or text, got dtype {array.dtype}")

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
        self.kind, self.count = kind, 0
        self._table = np.full(1 << 10, -1, np.int32)
        self._arena, self._bounds = np.zeros(1 << 13, np.uint8), np.zeros(1 << 9, np.int64)
        self._made: NDArray[Any] = np.empty(0, np.int64)

    def number(self, data: Octets, spans: Spans) -> NDArray[np.int32]:
        """Codes of spans of bytes, -1 for a span that starts below 0."""
        codes = np.empty(len(spans), np.int32)
        row = 0
        while True:
            row, self.count = kernels.number_spans(
                data, spans, row, self._table, self._arena, self._bounds, self.count, codes
            )  # fmt: skip
            if row == len(spans):
                return codes
            self._grow(int(spans[row, 1] - spans[row, 0]))

    def number_integers(self, values: NDArray[np.int64], missing: NDArray[np.bool_] | None = None) -> NDArray[np.int32]:
        begin = 8 * np.arange(len(values), dtype=np.int64)
        spans = np.stack([begin, begin + 8], axis=1)
        if missing is not None:
            spans[missing] = -1
        return self.number(np.array(values, np.int64).view(np.uint8), spans)

    def _grow(self, more: int) -> None:
        """Twice the room of whatever is full."""
        used = int(self._bounds[self.count])
        if used + more > len(self._arena):
            self._arena = np.concatenate([self._arena, np.zeros(max(len(self._arena), more), np.uint8)])
        if self.count + 2 > len(self._bounds):
            self._bounds = np.concatenate([self._bounds, np.zeros_like(self._bounds)])
        if 2 * (self.count + 1) > len(self._table):
            self._table = np.full(2 * len(self._table), -1, np.int32)
            kernels.rehash(self._arena, self._bounds, self.count, self._table)

    def labels(self) -> NDArray[Any]:
        """All labels so far, by code."""
        if len(self._made) != self.count:
            octets = self._arena[: self._bounds[self.count]]
            self._made = octets.view(np.int64).copy() if self.kind == "integer" else self._texts(octets.tobytes())
        return self._made

    def _texts(self, octets: bytes) -> NDArray[Any]:
        bounds = self._bounds[: self.count + 1].tolist()
        texts = [_text(octets[a:b]) for a, b in pairwise(bounds)]
        if self.kind != "field":
            return np.array(texts, str)
        texts = [_unquoted(t) for t in texts]
        if all(_is_plain_integer(t) for t in texts):
            return np.array([int(t) for t in texts], np.int64)
        return np.array(texts, str)


def _text(octets: bytes) -> str:
    """UTF-8, or Latin-1 where it is not (the Foursquare files)."""
    try:
        return octets.decode("utf-8")
    except UnicodeDecodeError:
        return octets.decode("latin-1")


def _unquoted(text: str) -> str:
    """A field that still has its quotes on has doubled ones inside."""
    return text[1:-1].replace('""', '"') if len(text) > 1 and text[0] == text[-1] == '"' else text


def _is_plain_integer(text: str) -> bool:
    digits = text[1:] if text[:1] == "-" else text
    return digits.isascii() and digits.isdigit() and len(digits) < 19 and str(int(text)) == text

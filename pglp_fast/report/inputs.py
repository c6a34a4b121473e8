"""What the caller gave, checked."""

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pglp_fast._util import validate as check
from pglp_fast.errors import InvalidParameter
from pglp_fast.io.labels import person_codes

from . import limits
from .laid import Laid


def one_each(values: Any, n: int, what: str, each: str) -> NDArray[Any] | None:
    """Names as an array, n of them; None if none were given."""
    if values is None:
        return None
    array = (
        values
        if isinstance(values, np.ndarray)
        else np.array([values] if isinstance(values, str) else list(values), object)
    )
    if array.shape != (n,):
        raise InvalidParameter(f"{what} has {len(array)} names for {n}: give one for each {each}")
    return array


def times_of(values: Any, laid: Laid) -> NDArray[Any] | None:
    """(1, columns) times of all traces, or (n, columns) of each; None if none were given."""
    if values is None:
        return None
    n, steps = laid.steps.shape
    if laid.evidence.shape is None:
        named = one_each(values, len(laid.row), "times", "event")
        assert named is not None
        if named.dtype.kind == "M":
            return laid.of(named, np.datetime64("NaT"))
        return laid.of(named.astype(object), "")
    if isinstance(values, np.ndarray) and values.ndim == 2:
        if values.shape != (n, steps):
            raise InvalidParameter(
                f"times has shape {values.shape}: give one for each step of each trace, "
                f"{(n, steps)}"
            )
        return values
    named = one_each(values, steps, "times", "step")
    assert named is not None
    return named[None]


def in_utc(times: NDArray[np.datetime64]) -> NDArray[Any]:
    """Moments as text that names its clock; empty where there is none."""
    text = np.char.replace(np.datetime_as_string(times.astype("datetime64[s]")), "T", " ")
    return np.where(np.isnat(times), "", np.char.add(text, " UTC"))


def names_of(values: NDArray[Any] | None, each: str, rows: NDArray[np.int64]) -> list[str]:
    """The names of some rows as text; numbered if there are none."""
    if values is None:
        return [f"{each} {k}" for k in rows.tolist()]
    some = values[rows]
    if some.dtype.kind == "M":
        return [
            "" if text == "NaT" else text.replace("T", " ")
            for text in np.datetime_as_string(some).tolist()
        ]
    return [str(v) for v in some]


def codes_of(values: NDArray[Any]) -> NDArray[np.int64]:
    """A number for each name, the same for the same."""
    try:
        return person_codes(values)
    except ValueError as error:
        raise InvalidParameter(f"users must be whole numbers or text: {error}") from None


def told_apart(names: list[str], each: str) -> list[str]:
    """Names that occur more than once, numbered."""
    total, seen = Counter(names), Counter[str]()
    out = []
    for name in names:
        seen[name] += 1
        out.append(f"{name}, {each} {seen[name]}" if total[name] > 1 else name)
    return out


def rows_of(users: Any, n: int, usual: NDArray[Any]) -> NDArray[np.int64]:
    """Which of n rows the map shows: the first of the usual ones unless told."""
    if users is None:
        return np.asarray(usual[: limits.SHOWN], np.int64)
    rows = np.atleast_1d(check.integers(users, "users")).astype(np.int64)
    if rows.ndim != 1 or not rows.size or len(np.unique(rows)) != len(rows):
        raise InvalidParameter("users must be different row numbers, at least one")
    if len(rows) > limits.MOST_SHOWN:
        raise InvalidParameter(
            f"users asks for {len(rows)} on the map, a report shows at most {limits.MOST_SHOWN}: "
            "choose some"
        )
    bad = rows[(rows < 0) | (rows >= n)]
    if bad.size:
        raise InvalidParameter(f"users has {bad[0]}, but rows are 0..{n - 1}")
    return rows


def cells_of(values: Any, size: int, name: str) -> NDArray[np.int32]:
    """Cells in an array of any shape, -1 for unknown."""
    array = np.atleast_1d(check.integers(values, name))
    return check.cells_or_missing(
        array,
        size,
        error=InvalidParameter,
        where=lambda cell, *at: f"{name} has {cell} at {np.ravel_multi_index(at, array.shape)}",
        missing="unknown",
    )


def middle_of(cells: NDArray[Any]) -> int:
    """A location that was released, near the middle of all that were."""
    some = cells[cells >= 0]
    return int(np.sort(some.reshape(-1))[some.size // 2])

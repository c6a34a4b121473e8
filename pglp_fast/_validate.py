"""Checks at the boundary, and the dtypes, named once."""

import math
import operator
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import InvalidLocation, InvalidParameter, PGLPError

CELL = np.int32
LABEL = np.int32
MAX_LOCATIONS = 2**31 - 2
MAX_USER = 2**60
MAX_TIME = 2**56

Cells = NDArray[np.int32]


def integers(values: ArrayLike, name: str, error: type[PGLPError] = InvalidLocation) -> NDArray[Any]:
    """``values`` as an integer array; an empty list counts as one."""
    array = np.asarray(values)
    if array.size == 0 and array.dtype.kind in "fO":
        return array.astype(np.int64)
    if array.dtype.kind == "b":
        raise error(f"{name} must be integers, got booleans: use np.flatnonzero(mask), or Domain.from_mask(locations, mask)")
    if array.dtype.kind not in "iu":
        raise error(f"{name} must be integers, got dtype {array.dtype}: convert them first, e.g. with .astype(np.int32)")
    return array


def cells(values: ArrayLike, size: int, name: str = "cells", *, error: type[PGLPError] = InvalidLocation) -> Cells:
    """Zero or one dimension of location numbers in 0..size-1, as int32."""
    array = integers(values, name, error)
    if array.ndim > 1:
        raise error(f"{name} must be one number or a 1-d array, got shape {array.shape}: pass {name}.ravel()")
    flat = array.reshape(-1)
    if flat.size and (flat.min() < 0 or flat.max() >= size):
        at = int(np.flatnonzero((flat < 0) | (flat >= size))[0])
        raise error(f"{name}[{at}] = {flat[at]} is not one of the {size} locations 0..{size - 1}")
    return np.ascontiguousarray(array, dtype=CELL).reshape(array.shape)


def one_cell(value: ArrayLike, size: int, name: str = "s") -> int:
    array = cells(value, size, name)
    if array.ndim:
        raise InvalidLocation(f"{name} must be one location, got an array of shape {array.shape}")
    return int(array)


def whole(value: Any, name: str, low: int, high: int | None = None) -> int:
    """A Python or NumPy integer in low..high."""
    try:
        number = operator.index(value)
    except TypeError:
        raise InvalidParameter(f"{name} must be an integer, got {value!r}") from None
    if isinstance(value, bool | np.bool_) or number < low or (high is not None and number > high):
        span = f"at least {low}" if high is None else f"in {low}..{high}"
        raise InvalidParameter(f"{name} must be an integer {span}, got {value!r}")
    return number


def positive(value: Any, name: str) -> float:
    """A finite real number > 0."""
    try:
        if isinstance(value, str | bytes | bool | np.bool_):  # float("1") and float(True) would pass
            raise TypeError
        number = float(value)
    except (TypeError, ValueError):
        raise InvalidParameter(f"{name} must be a number, got {value!r}") from None
    if not (math.isfinite(number) and number > 0):
        raise InvalidParameter(f"{name} must be a finite number above 0, got {value!r}")
    return number


def epsilon(value: Any) -> float:
    """A privacy parameter that noise can be drawn for."""
    number = positive(value, "epsilon")
    if not 1e-15 <= number <= 1e9:
        raise InvalidParameter(f"epsilon must be in 1e-15..1e9, got {value!r}: beyond that floats overflow")
    return number


def choice(value: Any, name: str, options: Iterable[str]) -> str:
    names = list(options)
    if value not in names:
        raise InvalidParameter(f"{name} must be one of {', '.join(map(repr, names))}, got {value!r}")
    return str(value)


def pair(values: Any, name: str) -> tuple[float, float]:
    """Two numbers, such as a latitude and a longitude."""
    try:
        a, b = (float(v) for v in values)
    except (TypeError, ValueError):
        raise InvalidLocation(f"{name} must be two numbers, got {values!r}") from None
    return a, b


def points(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """Finite coordinates, shape (n, 2)."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidLocation(f"{name} must be numbers, shape (n, 2)") from None
    if array.size == 0:
        return array.reshape(0, 2)
    if array.ndim == 1 and array.shape == (2,):
        array = array.reshape(1, 2)
    if array.ndim != 2 or array.shape[1] != 2:
        raise InvalidLocation(f"{name} must have shape (n, 2), got {array.shape}")
    bad = np.flatnonzero(~np.isfinite(array).all(axis=1))
    if bad.size:
        raise InvalidLocation(f"{name}[{bad[0]}] = {array[bad[0]].tolist()} is not finite: drop or repair such rows first")
    return np.ascontiguousarray(array)

"""Checks at the boundary, and the dtypes, named once."""

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pglp_fast.errors import InvalidLocation, InvalidParameter, PGLPError

from .arrays import for_kernels

CELL = np.int32
LABEL = np.int32
MAX_LOCATIONS = 2**31 - 2
MAX_USER = 2**60
MAX_TIME = 2**56
LEAST_EPSILON, MOST_EPSILON = 1e-15, 1e9  # beyond that floats overflow
# lengths and coordinates in km whose products and squares neither underflow nor overflow
LEAST_KM, MOST_KM, MOST_KM_AWAY = 1e-6, 1e6, 1e15
_SHOWN = 200  # characters of a wrong value that a message repeats

Cells = NDArray[np.int32]
Kind = TypeVar("Kind")


def brief(value: Any) -> str:
    """A value as messages show it: not too long, and safe for any object."""
    try:
        text = repr(value)
    except Exception:  # an integer of 5,000 digits has no repr; the message must not fail for it
        text = f"a {type(value).__name__}"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def instance(
    value: Any, kind: type[Kind], what: str, how: str, error: type[PGLPError] = InvalidParameter
) -> Kind:
    """The value if it is of a kind; else an error that says how to make one."""
    if not isinstance(value, kind):
        raise error(f"{what}, got {type(value).__name__}: {how}")
    return value


def _masked(values: Any) -> bool:
    """Whether some entry of a masked array, or of one in a list, has no value."""
    if isinstance(values, list | tuple):
        inner = (list, tuple, np.ma.MaskedArray)
        return any(isinstance(v, inner) and _masked(v) for v in values)
    return bool(np.ma.is_masked(values))


def holds_booleans(values: Any) -> bool:
    """Whether there is a boolean, in a list or mapping too, where NumPy would take it for 0 or
    1."""
    if isinstance(values, Mapping):
        values = list(values.values())
    if isinstance(values, list | tuple):
        return any(
            isinstance(v, bool | np.bool_)
            or (isinstance(v, list | tuple | np.ndarray) and holds_booleans(v))
            for v in values
        )
    kind = getattr(getattr(values, "dtype", None), "kind", "")
    if kind == "O":
        return holds_booleans(np.asarray(values).reshape(-1).tolist())
    return bool(kind == "b") or isinstance(values, bool)


def as_array(values: Any, name: str, error: type[PGLPError]) -> NDArray[Any]:
    """``values`` as a plain NumPy array. Masked entries are refused: they have no value."""
    if _masked(values):
        raise error(f"{name} has masked entries: fill or drop them first")
    try:
        return np.asarray(values)
    except (TypeError, ValueError, OverflowError, RuntimeError) as problem:
        lengths = _lengths(values)
        if lengths is not None:
            raise error(
                f"{name} has rows of different lengths, {lengths[0]} to {lengths[1]} entries: pad "
                "the shorter ones with -1 for missing"
            ) from None
        raise error(f"{name} is not an array: {problem}") from None


def _lengths(values: Any) -> tuple[int, int] | None:
    """Shortest and longest of a list of rows; None where it is no such list, or they agree."""
    try:
        lengths = [len(row) for row in values if not isinstance(row, str)]
    except TypeError:
        return None
    return (min(lengths), max(lengths)) if len(set(lengths)) > 1 else None


def floats(
    values: Any, name: str, error: type[PGLPError] = InvalidParameter
) -> NDArray[np.float64]:
    """``values`` as real numbers in float64, laid out as kernels take them."""
    array = as_array(values, name, error)
    if array.dtype.kind == "O":  # a column of objects counts as what its entries are
        array = as_array(array.tolist(), name, error)
    if array.dtype.kind not in "biuf":
        raise error(
            f"{name} must be real numbers, got dtype {array.dtype}: convert them first, e.g. with "
            ".astype(float)"
        )
    with np.errstate(over="ignore"):  # what float64 cannot hold is infinite
        return for_kernels(array, np.float64)


def integers(
    values: ArrayLike, name: str, error: type[PGLPError] = InvalidLocation
) -> NDArray[Any]:
    """``values`` as an integer array; an empty list counts as one."""
    array = as_array(values, name, error)
    if array.size == 0 and array.dtype.kind in "fO":
        return array.astype(np.int64)
    if array.dtype.kind == "b":
        raise error(
            f"{name} must be integers, got booleans: use np.flatnonzero(mask), or "
            "Domain.from_mask(locations, mask)"
        )
    if array.dtype.kind not in "iu":
        raise error(f"{name} must be integers, got {_not_integers(array)}")
    return array


def _not_integers(array: NDArray[Any]) -> str:
    """What it is instead, and what to do about that."""
    what = f"dtype {array.dtype}"
    if array.dtype.kind == "f":
        if np.isnan(array).any():
            return f"{what} with NaN: write -1 for missing where that is allowed, else drop them"
        if (array == np.trunc(array)).all():
            return f"{what}: convert them first, e.g. with .astype(np.int32)"
        return (
            f"{what} with fractions: numbers of cells are wanted, not coordinates. "
            "Grid.locate(lat, lon) or Points.nearest(xy_km) gives the cells of places"
        )
    if array.dtype.kind in "USO":
        return f"{what}: numbers of cells are wanted, not text or other objects"
    return f"{what}: numbers of cells are wanted"


def labels(values: ArrayLike, size: int, name: str, error: type[PGLPError]) -> NDArray[np.int64]:
    """One integer for each of ``size`` locations."""
    array = integers(values, name, error)
    if array.shape != (size,):
        raise error(
            f"{name} has shape {array.shape}: give one integer for each of the {size} locations"
        )
    if array.dtype.kind == "u" and array.max(initial=0) > np.iinfo(np.int64).max:
        raise error(f"{name} has labels above 2^63: number them from 0 on")
    return for_kernels(array, np.int64)


def category_labels(
    values: ArrayLike, size: int, name: str, error: type[PGLPError]
) -> NDArray[np.int64]:
    """A category 0, 1, ... for each of ``size`` locations, or -1 for none."""
    array = labels(values, size, name, error)
    if array.min(initial=0) < -1:
        at = int(np.flatnonzero(array < -1)[0])
        raise error(f"{name}[{at}] = {array[at]}: categories are 0, 1, ..., and -1 for none")
    return array


def cells(
    values: ArrayLike, size: int, name: str = "cells", *, error: type[PGLPError] = InvalidLocation
) -> Cells:
    """Zero or one dimension of location numbers in 0..size-1, as int32."""
    array = integers(values, name, error)
    if array.ndim > 1:
        raise error(
            f"{name} must be one number or a 1-d array, got shape {array.shape}: pass "
            f"{name}.ravel()"
        )
    flat = array.reshape(-1)
    if flat.size and (flat.min() < 0 or flat.max() >= size):
        at = int(np.flatnonzero((flat < 0) | (flat >= size))[0])
        raise error(f"{name}[{at}] = {flat[at]} is not one of the {size} locations 0..{size - 1}")
    return for_kernels(array, CELL)


def cells_or_missing(
    values: ArrayLike,
    size: int,
    name: str = "cells",
    *,
    error: type[PGLPError] = InvalidLocation,
    where: Callable[..., str] | None = None,
    missing: str = "missing",
) -> Cells:
    """Location numbers in 0..size-1, or -1, in an array of any shape, as int32.

    Parameters
    ----------
    where : how the message names a wrong entry, from its value and its index along each axis, such
        as ``lambda v, u, t: f"user {u} has {v} at step {t}"``; ``name[u, t] = v`` unless given
    missing : what the message says that -1 stands for
    """
    array = integers(values, name, error)
    if array.size and (array.min() < -1 or array.max() >= size):
        at = np.argwhere((array < -1) | (array >= size))[0].tolist()
        value = array[tuple(at)]
        if where is None:
            raise error(
                f"{name}[{', '.join(map(str, at))}] = {value} is neither one of the {size} "
                f"locations 0..{size - 1} nor -1 for {missing}"
            )
        raise error(f"{where(value, *at)}: cells are 0..{size - 1}, and -1 for {missing}")
    return for_kernels(array, CELL)


def user_numbers(users: Any) -> NDArray[np.int64]:
    """Distinct numbers of users: those given, or 0..n-1 for a single n."""
    given = as_array(users, "users", InvalidParameter)
    if given.ndim == 0:
        return np.arange(whole(users, "users", 0))
    array = integers(given, "users", InvalidParameter)
    if array.ndim != 1 or (array.size and (array.min() < 0 or array.max() >= MAX_USER)):
        raise InvalidParameter(f"users must be a 1-d array of numbers in 0..{MAX_USER - 1}")
    ids = array.astype(np.int64)
    values, counts = np.unique(ids, return_counts=True)
    if len(values) != len(ids):
        raise InvalidParameter(
            f"user {values[counts > 1][0]} occurs twice: two users must not share their noise"
        )
    return ids


def listed(values: Any, name: str, error: type[PGLPError] = InvalidParameter) -> list[Any]:
    """What there is in a list, an array or anything else that can be gone through."""
    try:
        return list(values)
    except (TypeError, ValueError, RuntimeError, LookupError):
        raise error(f"{name} must be a list, got {brief(values)}") from None


def prior(values: Any, size: int) -> NDArray[np.float64]:
    """How likely each location is, not necessarily summing to 1: a copy of what was given."""
    try:
        weight = floats(values, "prior").copy()
    except InvalidParameter:
        raise InvalidParameter(f"prior must be {size} numbers, one for each location") from None
    if weight.shape != (size,):
        raise InvalidParameter(
            f"prior has shape {weight.shape}: give one number for each of the {size} locations"
        )
    bad = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
    if bad.size:
        raise InvalidParameter(
            f"prior[{bad[0]}] = {weight[bad[0]]}: every entry must be a finite number, 0 or more"
        )
    if not weight.max(initial=0) > 0:
        raise InvalidParameter("prior is zero everywhere: some location must be possible")
    return weight


def one_cell(value: ArrayLike, size: int, name: str = "s") -> int:
    """A single location number in 0..size-1."""
    array = cells(value, size, name)
    if array.ndim:
        raise InvalidLocation(f"{name} must be one location, got an array of shape {array.shape}")
    return int(array)


def whole(value: Any, name: str, low: int, high: int | None = None) -> int:
    """A Python or NumPy integer in low..high."""
    if type(value) is int and low <= value and (high is None or value <= high):
        return value
    try:
        number = operator.index(value)
    except (TypeError, ValueError):
        raise InvalidParameter(f"{name} must be an integer, got {brief(value)}") from None
    wrong = isinstance(value, bool | np.bool_) or _masked(value)
    if wrong or number < low or (high is not None and number > high):
        span = f"at least {low}" if high is None else f"in {low}..{high}"
        raise InvalidParameter(f"{name} must be an integer {span}, got {brief(value)}")
    return number


def real(value: Any, name: str, error: type[PGLPError] = InvalidParameter) -> float:
    """One real number; text, booleans and arrays are none, though ``float`` would take some."""
    try:
        array = as_array(value, name, error)
        if array.ndim or array.dtype.kind not in "iufO":
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise error(f"{name} must be a number, got {brief(value)}") from None


def positive(value: Any, name: str) -> float:
    """A finite real number > 0."""
    number = real(value, name)
    if not (math.isfinite(number) and number > 0):
        raise InvalidParameter(f"{name} must be a finite number above 0, got {brief(value)}")
    return number


def within(value: Any, name: str, low: float, high: float, why: str) -> float:
    """A real number in low..high; the message says why not beyond."""
    number = positive(value, name)
    if not low <= number <= high:
        raise InvalidParameter(f"{name} must be in {low:g}..{high:g}, got {brief(value)}: {why}")
    return number


def length_km(value: Any, name: str) -> float:
    """A length in km for which distances and areas are right."""
    why = "beyond that products of lengths are not exact enough in float64"
    return within(value, name, LEAST_KM, MOST_KM, why)


def epsilon(value: Any) -> float:
    """A privacy parameter that noise can be drawn for."""
    number = positive(value, "epsilon")
    if not LEAST_EPSILON <= number <= MOST_EPSILON:
        raise InvalidParameter(
            f"epsilon must be in 1e-15..1e9, got {brief(value)}: beyond that floats overflow"
        )
    return number


def choice(value: Any, name: str, options: Iterable[str]) -> str:
    """One of the options."""
    names = list(options)
    if not isinstance(value, str) or value not in names:
        raise InvalidParameter(
            f"{name} must be one of {', '.join(map(repr, names))}, got {brief(value)}"
        )
    return str(value)


def pair(values: Any, name: str) -> tuple[float, float]:
    """Two numbers, such as a latitude and a longitude."""
    try:
        a, b = (real(v, name, InvalidLocation) for v in listed(values, name, InvalidLocation))
    except ValueError:  # an InvalidLocation is one too
        raise InvalidLocation(f"{name} must be two numbers, got {brief(values)}") from None
    return a, b


def points(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """Coordinates in km, shape (n, 2), finite and not beyond all maps."""
    array = floats(values, name, InvalidLocation)
    if array.size == 0:
        return array.reshape(0, 2)
    if array.ndim == 1 and array.shape == (2,):
        array = array.reshape(1, 2)
    if array.ndim != 2 or array.shape[1] != 2:
        raise InvalidLocation(f"{name} must have shape (n, 2), got {array.shape}")
    bad = np.flatnonzero(~np.isfinite(array).all(axis=1))
    if bad.size:
        raise InvalidLocation(
            f"{name}[{bad[0]}] = {array[bad[0]].tolist()} is not finite: drop or repair such rows "
            "first"
        )
    far = np.flatnonzero(np.abs(array).max(axis=1) > MOST_KM_AWAY)
    if far.size:
        raise InvalidLocation(
            f"{name}[{far[0]}] = {array[far[0]].tolist()} is further out than {MOST_KM_AWAY:g} km: "
            "coordinates are km"
        )
    return array

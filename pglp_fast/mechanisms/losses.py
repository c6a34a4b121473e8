"""What a wrong answer costs: the loss that optimal mechanisms, remapping and attacks minimise."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pglp_fast._util import validate as check
from pglp_fast.errors import InvalidParameter
from pglp_fast.policy.components import Component
from pglp_fast.space.locations import Locations

_NAMED: dict[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
    "euclidean": lambda d: np.asarray(np.hypot(d[..., 0], d[..., 1])),
    "squared": lambda d: np.asarray((d**2).sum(axis=-1)),
}


@dataclass(frozen=True)
class Loss:
    """loss(s, z): "euclidean" (km), "squared" (km^2), an (N, N) matrix, or a function of two
    broadcast arrays of locations."""

    locations: Locations
    kind: str | NDArray[np.float64] | Callable[..., Any]

    @property
    def translates(self) -> bool:
        """Whether components that are translates of each other have the same losses."""
        return isinstance(self.kind, str)

    def matrix(self, component: Component) -> NDArray[np.float64]:
        """loss[s, z] over the places of a component."""
        if isinstance(self.kind, str):
            at = component.sites * np.asarray(self.locations.scale)
            return _NAMED[self.kind](at[:, None] - at[None])
        members = component.known_members()
        if isinstance(self.kind, np.ndarray):
            return self.kind[np.ix_(members, members)]
        s, z = members[:, None], members[None]
        out = check.floats(self.kind(s, z), "loss(s, z)")
        k = len(members)
        if out.shape != (k, k) or not np.isfinite(out).all():
            raise InvalidParameter(
                f"loss(s, z) must give finite numbers of shape ({k}, {k}) for s of shape ({k}, 1) "
                f"and z of shape (1, {k}), "
                f"got shape {out.shape}"
            )
        return out

    def describe(self) -> str:
        """Tells losses apart."""
        if isinstance(self.kind, str):
            return self.kind
        if isinstance(self.kind, np.ndarray):
            return hashlib.sha256(self.kind.tobytes()).hexdigest()
        raise InvalidParameter(
            "a loss that is a function cannot be told from another one later, so a stream that "
            "uses it cannot be saved: "
            "give the loss as a matrix"
        )


def make_loss(locations: Locations, loss: Any) -> Loss:
    if isinstance(loss, str):
        if loss not in _NAMED:
            raise InvalidParameter(
                f"loss must be one of {', '.join(map(repr, _NAMED))}, a matrix or a function of "
                f"(s, z), got {loss!r}"
            )
        return Loss(locations, loss)
    if callable(loss):
        return Loss(locations, loss)
    n = locations.size
    try:
        array = check.floats(loss, "loss").copy()  # the caller cannot change it later
    except InvalidParameter:
        array = None
    if array is None or array.shape != (n, n) or not np.isfinite(array).all():
        got = f"got shape {array.shape}" if array is not None else f"got {type(loss).__name__}"
        raise InvalidParameter(
            f"loss must be 'euclidean', 'squared' or a finite ({n}, {n}) matrix, {got}"
        )
    return Loss(locations, array)


def make_prior(locations: Locations, prior: Any) -> NDArray[np.float64] | None:
    """How likely each location is, not necessarily summing to 1; None stays None: evenly."""
    if prior is None:
        return None
    n = locations.size
    try:
        array = check.prior(prior, n)
    except InvalidParameter:
        raise InvalidParameter(
            f"prior must be {n} numbers, one for each location, none negative and not all zero"
        ) from None
    return np.asarray(array / array.max())  # so that no sum can overflow

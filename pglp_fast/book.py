"""The tables that traces draw from, made when a component is first met and kept by its shape."""

from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._kernels import book as kernels
from ._kernels import shapes, weights
from .components import Component
from .errors import PGLPError, TooLarge
from .expbound import exp_lower_bound
from .losses import Loss
from .mechanisms.recipe import ROW_SUM, Recipe

MAX_LOCATIONS = 1024  # in a component: beyond, a table for each step costs more than anybody would wait for
MAX_ENTRIES = 1 << 23  # numbers kept (200 MB), above which the next step begins with an empty book


class TableBook:
    """Tables by component: weights that are drawn from, likelihoods, and losses where answers are remapped."""

    def __init__(self, recipe: Recipe, epsilon: float, remap: Loss | None, *, everyone: bool):
        self.recipe, self.remap, self.everyone = recipe, remap, everyone
        self.anchored = not recipe.translates or (remap is not None and not remap.translates)
        self._bound = exp_lower_bound(epsilon)
        self._lock = Lock()
        self.book = _empty()

    def __len__(self) -> int:
        return len(self.book.at) - 1

    def begin_step(self) -> None:
        """Forget everything if there is too much of it. Only between steps: within one, nothing that is needed may go."""
        with self._lock:
            if self.book.at[-1] > MAX_ENTRIES:
                self.book = _empty()

    def add(self, keys: NDArray[np.int64]) -> None:
        """Make the tables of these keys, given end to end."""
        with self._lock:
            new = {key.tobytes(): key for key in _split(keys) if kernels.find(self.book, key) < 0}
            tables = [self._table(decode(key)) for key in new.values()]
            self.book = _extended(self.book, list(new.values()), tables)

    def _table(self, component: Component) -> tuple[NDArray[Any], ...]:
        """(cumulative weights, ln Pr, losses), each flat."""
        k = len(component.sites)
        self.recipe.check_size(k)
        if k > MAX_LOCATIONS:
            raise TooLarge(
                f"a component of a user's domain has {k} locations, a trace by tables takes {MAX_LOCATIONS}: "
                "use delta, smaller blocks, or mechanism='ppim' without remapping"
            )
        logs = self.recipe.log_matrix(component)
        if not np.abs(np.exp(logs).sum(axis=1) - 1).max() <= ROW_SUM:
            raise PGLPError(
                f"the probabilities of a component of {k} locations do not sum to 1: they are too far apart for float64"
            )
        pairs = component.pairs
        if self.everyone:
            sites, no_edges = (
                component.sites.astype(np.int32),
                (np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros((0, 2), np.int32)),
            )
            pairs = shapes.protected_pairs(np.arange(k, dtype=np.int32), sites, component.hull, True, *no_edges)
        W = np.empty((k, k), np.uint64)
        mixed = weights.prove_weights(
            np.exp(logs), *shapes.connected(component.lead, pairs), component.lead, pairs, *self._bound, W
        )
        with np.errstate(divide="ignore"):
            drawn = np.log(W) - np.log(weights.TOTAL)
        # exact, but where rounding lets more be drawn than is possible, or more had to be mixed in than rounding takes
        logs = np.where(np.isneginf(logs), drawn, logs) if mixed <= weights.LEAST_MIXED else drawn
        losses = np.zeros(0) if self.remap is None else self.remap.matrix(component).ravel()
        return np.cumsum(W, axis=1, dtype=np.uint64).ravel(), logs.ravel(), losses


def decode(key: NDArray[np.int64]) -> Component:
    """What a key says; see ``_kernels.book``."""
    k, m, h, anchored = key[: kernels.HEADER].tolist()
    rest = key[kernels.HEADER :]
    places, rest = rest[: 3 * k].reshape(k, 3), rest[3 * k :]
    pairs, rest = rest[: 2 * m].reshape(m, 2), rest[2 * m :]
    hull, rest = rest[: 2 * h].reshape(h, 2), rest[2 * h :]
    sites, lead = np.ascontiguousarray(places[:, :2]), np.ascontiguousarray(places[:, 2])
    return Component(sites, lead, pairs.copy(), rest[:k].astype(np.int32) if anchored else None, hull.copy())


def _split(keys: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Keys that lie end to end; the header of each tells its length."""
    out = []
    while keys.size:
        k, m, h, anchored = keys[: kernels.HEADER].tolist()
        length = kernels.HEADER + (3 + anchored) * k + 2 * (m + h)
        out.append(keys[:length])
        keys = keys[length:]
    return out


def _empty() -> kernels.Book:
    nothing = np.zeros(1, np.int64)
    return kernels.Book(
        np.full(16, -1, np.int64), nothing, np.empty(0, np.int64), nothing, np.empty(0, np.uint64), np.empty(0), np.empty(0)
    )


def _extended(book: kernels.Book, keys: list[NDArray[np.int64]], tables: list[tuple[NDArray[Any], ...]]) -> kernels.Book:
    """A book with more entries. The old one stays as it is: a thread may be reading it."""
    if not keys:
        return book
    starts = np.concatenate([book.starts, book.starts[-1] + np.cumsum([len(key) for key in keys])])
    at = np.concatenate([book.at, book.at[-1] + np.cumsum([len(t[0]) for t in tables])])
    all_keys = np.concatenate([book.keys, *keys])
    pools = [np.concatenate([old, *(t[n] for t in tables)]) for n, old in enumerate((book.cumulative, book.logs, book.losses))]
    slots = np.full(1 << max(4, int(np.ceil(np.log2(2 * len(starts))))), -1, np.int64)
    kernels.enter(slots, starts, all_keys, 0, len(starts) - 1)
    return kernels.Book(slots, starts, all_keys, at, *pools)

"""The tables that traces draw from, made when a component is first met and kept by its shape."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pglp_fast._kernels.base.bound_arrays import bind
from pglp_fast._kernels.noise import integer_weights
from pglp_fast._kernels.noise.alias_rows import TOTAL
from pglp_fast._kernels.policy import shapes
from pglp_fast._kernels.trace import table_cache as kernels
from pglp_fast._util.arrays import Growing
from pglp_fast._util.threads import ForkLock
from pglp_fast.errors import PGLPError, TooLarge
from pglp_fast.mechanisms.contract import Mechanism
from pglp_fast.mechanisms.exp_bound import exp_lower_bound, pair_bounds
from pglp_fast.mechanisms.losses import Loss
from pglp_fast.policy.components import Component

# in a component: beyond, a table for each step costs more than anybody would wait for
MAX_LOCATIONS = 1024
MAX_ENTRIES = 1 << 23  # numbers kept (200 MB), above which the next step begins with an empty one


class TableCache:
    """Tables by component: weights that are drawn from, likelihoods, and losses where answers are
    remapped. Every table is proved before it is drawn from.

    Attributes
    ----------
    bound : Bound
        As kernels take them. It is replaced, never changed: a thread may be reading it.
    """

    def __init__(
        self,
        make: Callable[..., Mechanism],
        epsilon: float,
        remap: Loss | None,
        *,
        everyone: bool,
        density: bool = False,
    ):
        mechanism = make(epsilon=epsilon)
        self.mechanism, self.remap = mechanism, remap
        self._make, self._mechanisms = make, {epsilon: mechanism}
        self.everyone, self.density = everyone, density
        self.anchored = not mechanism.translates or (remap is not None and not remap.translates)
        self._lock = ForkLock()
        self._users, self._version = 0, 0
        self._forget()

    def _forget(self) -> None:
        self._version += 1
        self._digests, self._worst = list[int](), list[tuple[float, float]]()
        self._starts, self._at = [0], [0]
        self._keys = Growing(np.int64)
        self._pools = [Growing(np.uint64), *(Growing(np.float64) for _ in range(3))]
        self._slots = np.full(16, -1, np.int64)
        self._publish()

    def _publish(self) -> None:
        tables = kernels.Tables(
            self._version, self._slots, np.array(self._starts), self._keys.room,
            np.array(self._at), *(pool.room for pool in self._pools),
        )  # fmt: skip
        self.bound = bind(tables)

    @property
    def arrays(self) -> kernels.Tables:
        """As kernels take them."""
        arrays: kernels.Tables = self.bound.value
        return arrays

    def __getstate__(self) -> dict[str, Any]:
        """For a copy that nobody uses yet."""
        return vars(self) | {"_users": 0}

    def __len__(self) -> int:
        return len(self.arrays.starts) - 1

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Within, nothing is forgotten; before the first user, everything if it is too much."""
        with self._lock:
            if self._users == 0 and self._at[-1] > MAX_ENTRIES:
                self._forget()
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1

    def proofs(self, entries: NDArray[np.int32]) -> dict[int, tuple[float, float]]:
        """Digest of the key of each table among these; its epsilon and the largest ln ratio of its
        weights."""
        # a step has few entries, a run many that are the same
        distinct = entries if len(entries) < 64 else np.unique(entries)
        used = (e for e in sorted(set(distinct.tolist())) if e >= 0)
        return {self._digests[e]: self._worst[e] for e in used}

    def add(self, keys: NDArray[np.int64]) -> None:
        """Make the tables of these keys, given end to end."""
        with self._lock:
            self._cut_back()
            new = {key.tobytes(): key for key in _split(keys) if kernels.find(self.arrays, key) < 0}
            first = len(self._worst)
            for key in new.values():
                epsilon = epsilon_of(key)
                worst, *parts = self._table(decode(key), self.for_epsilon(epsilon))
                self._append(key, (epsilon, worst), *parts)
            self._enter(first)
            self._publish()

    def _cut_back(self) -> None:
        """To what is published: an addition that failed, or that a fork cut in two, is undone."""
        n = len(self.arrays.starts) - 1
        self._slots = self.arrays.slots
        del self._starts[n + 1 :], self._at[n + 1 :], self._worst[n:], self._digests[n:]
        self._keys.used = self._starts[n]
        for pool in self._pools:
            pool.used = self._at[n]

    def for_epsilon(self, epsilon: float) -> Mechanism:
        """What answers for components at an epsilon."""
        if epsilon not in self._mechanisms:
            self._mechanisms[epsilon] = self._make(epsilon=epsilon)
        return self._mechanisms[epsilon]

    def _append(
        self, key: NDArray[np.int64], worst: tuple[float, float], *parts: NDArray[Any]
    ) -> None:
        self._keys.extend(key)
        self._starts.append(self._starts[-1] + len(key))
        self._at.append(self._at[-1] + len(parts[0]))
        for pool, part in zip(self._pools, parts, strict=True):
            pool.extend(part)
        self._digests.append(int.from_bytes(hashlib.sha256(key.tobytes()).digest()[:8]))
        self._worst.append(worst)

    def _enter(self, first: int) -> None:
        """Entries from ``first`` on into a new hash table: who reads the old one knows fewer."""
        count, size = len(self._worst), len(self._slots)
        while 2 * count > size:
            size, first = 2 * size, 0
        self._slots = np.full(size, -1, np.int64) if first == 0 else self._slots.copy()
        kernels.enter(self._slots, np.array(self._starts), self._keys.room, first, count)

    def _table(self, component: Component, mechanism: Mechanism) -> tuple[Any, ...]:
        """(largest ln ratio; cumulative weights by s; Pr and ln Pr by z; losses), each flat."""
        k = len(component.sites)
        mechanism.check_size(k)
        if k > MAX_LOCATIONS:
            raise TooLarge(
                f"a component of a user's domain has {k} locations, a trace by tables takes "
                f"{MAX_LOCATIONS}: "
                "use delta, smaller blocks, or mechanism='ppim' without remapping"
            )
        logs = mechanism.log_matrix(component)
        W, protected = np.empty((k, k), np.uint64), self._protected(component, mechanism.epsilon)
        bound = exp_lower_bound(mechanism.epsilon)
        if not np.isfinite(integer_weights.prove_weights(np.exp(logs), protected, bound, W)):
            raise PGLPError(
                f"no integer weights for a component of {k} locations keep the bound within "
                f"{integer_weights.MAX_DISTANCE:g} of its probabilities: use a larger epsilon"
            )
        cumulative = np.cumsum(W, axis=1, dtype=np.uint64)
        worst = _proved(cumulative, protected, bound)
        with np.errstate(divide="ignore"):
            drawn = np.log(W) - np.log(TOTAL)
        # exact, but where rounding lets more be drawn than is possible, or less: what is never
        # drawn is impossible, or C_t would be larger than the true one
        logs = np.where(np.isneginf(logs) | (W == 0), drawn, logs)
        if self.density:
            logs = mechanism.log_densities(component, logs)
        losses = np.zeros(k * k) if self.remap is None else self.remap.matrix(component).ravel()
        said = logs.T.ravel()
        return worst, cumulative.ravel(), np.exp(said), said, losses

    def _protected(self, component: Component, epsilon: float) -> shapes.Protected:
        """What the proof of a table is about: its edges, each with its weight; with the graph
        calibration all pairs that the sensitivity hull reaches, too."""
        heads, edges, weights = component.heads, component.pairs, component.weights
        others = np.empty((0, 2), np.int64)
        if self.everyone:
            sites = component.sites * component.denominator
            others = shapes.reached_pairs(sites, component.hull)
        if weights is None:
            pairs = others if self.everyone else edges
            return shapes.Protected(heads, pairs, *shapes.NO_WEIGHTS)
        both = np.concatenate([weights, np.ones_like(others)])
        bounds = pair_bounds(epsilon, both[:, 0], both[:, 1])
        return shapes.Protected(heads, np.concatenate([edges, others]), *bounds)


def _proved(cumulative: NDArray[np.uint64], protected: shapes.Protected, bound: Any) -> float:
    """The largest ln ratio of the weights that are drawn from, read back; an error where one is
    above e^epsilon, or a row does not sum to 2**63."""
    read = np.diff(cumulative, axis=1, prepend=np.uint64(0))
    worst = np.empty(4)
    whole = bool((cumulative[:, -1] == TOTAL).all())
    if not (whole and integer_weights.check_weights(read, protected, bound, worst)):
        raise PGLPError(
            f"a table of {len(read)} locations breaks its own bound: nothing is drawn from it"
        )
    return float(worst[0])


def epsilon_of(key: NDArray[np.int64]) -> float:
    """The epsilon of a key."""
    return float(key[4:5].view(np.float64)[0])


def decode(key: NDArray[np.int64]) -> Component:
    """What a key says; see ``_kernels.trace.table_cache``."""
    k, m, h, anchored, denominator = _header(key)
    rest = key[kernels.HEADER :]
    places, rest = rest[: 3 * k].reshape(k, 3), rest[3 * k :]
    pairs, rest = rest[: 2 * m].reshape(m, 2), rest[2 * m :]
    hull, rest = rest[: 2 * h].reshape(h, 2), rest[2 * h :]
    sites, heads = np.ascontiguousarray(places[:, :2]), np.ascontiguousarray(places[:, 2])
    members = rest[:k].astype(np.int32) if anchored else None
    if not denominator:
        return Component(sites, heads, pairs.copy(), members, hull.copy())
    weights = rest[k * anchored :].reshape(m, 2).copy()
    return Component(
        sites // denominator, heads, pairs.copy(), members, hull.copy(), weights, denominator
    )


def _header(key: NDArray[np.int64]) -> tuple[int, int, int, int, int]:
    """(members, edges, vertices of the hull, whether anchored, denominator or 0)."""
    k, m, h, flags, _ = key[: kernels.HEADER].tolist()
    return k, m, h, flags & 1, flags >> 1


def _split(keys: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Keys that lie end to end; the header of each tells its length."""
    out = []
    while keys.size:
        k, m, h, anchored, denominator = _header(keys)
        length = kernels.HEADER + (3 + anchored) * k + 2 * (m + h) + 2 * m * (denominator > 0)
        out.append(keys[:length])
        keys = keys[length:]
    return out

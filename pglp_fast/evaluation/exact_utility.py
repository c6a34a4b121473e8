"""Expected errors of a mechanism, from its exact Pr(z|s): nothing is drawn."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pglp_fast._kernels.evaluation import errors as kernels
from pglp_fast._util import validate as check
from pglp_fast._util.arrays import starts_of
from pglp_fast._util.threads import run_ranges
from pglp_fast.errors import InvalidDomain, InvalidParameter, TooLarge
from pglp_fast.mechanisms.contract import Mechanism
from pglp_fast.mechanisms.table_sampler import MAX_TABLE

from .utility_result import QUANTILES, Floats, Utility, Worst, asked_quantiles, labels_of

_ENTRIES = 1 << 22  # probabilities held at a time
_ROUNDING = 1e-12  # a cumulative probability this little short of q has reached it


def utility(
    mechanism: Mechanism,
    *,
    prior: ArrayLike | None = None,
    region: int | ArrayLike | None = None,
    categories: ArrayLike | None = None,
    quantiles: Sequence[float] = QUANTILES,
) -> Utility:
    """Expected errors of a mechanism, from its exact Pr(z|s): nothing is drawn.

    Parameters
    ----------
    mechanism : any mechanism whose output sets have at most 2,048 locations
    prior : how likely each location is to be the true one, (N,), in any unit (counts will do); even
        over the mechanism's domain if None. Must be 0 outside the domain.
    region : cells a side of the square regions of E_r, aligned with ``pf.blocks(grid, region)``;
        None: 5 on a Grid, no E_r on Points. Or one integer for each location, the region it lies
        in.
    categories : one integer for each location, for E_poi; -1 (no category) counts as a category of
        its own. None: no E_poi
    quantiles : of the distance, each between 0 and 1

    Notes
    -----
    Matrices are computed once for each distinct shape. The distance needs no more; regions and
    categories take one pass over the pairs (s, z) of each component that has more than one."""
    if not isinstance(mechanism, Mechanism):
        raise InvalidParameter(
            f"utility takes a mechanism, got {type(mechanism).__name__}: pass pf.PPIM(...), or use "
            "pf.estimate_utility(locations, true, released) on samples"
        )
    g = mechanism.groups
    labels = labels_of(mechanism.locations, region, categories)
    wanted = asked_quantiles(quantiles)
    weight = location_weights(prior, g.address[:, 0] >= 0)
    sizes = g.sizes
    if sizes.max() > MAX_TABLE:
        raise TooLarge(
            f"the output set of location {g.of_shape(int(np.argmax(sizes)))[0]} has {sizes.max()} "
            f"locations, exact errors are computed up to {MAX_TABLE}: estimate "
            "them with pf.estimate_utility(locations, true, mechanism.release(true))"
        )
    errors = _Errors(mechanism, weight, labels)
    entries = starts_of(sizes**2)
    first = 0
    while first < len(sizes):
        room = np.searchsorted(entries, entries[first] + _ENTRIES, side="right")
        last = max(first + 1, int(room) - 1)
        errors.add(first, last, entries[first : last + 1] - entries[first], bool(wanted))
        first = last
    return errors.result(wanted)


class _Errors:
    """Errors summed over shapes, some at a time.

    Attributes
    ----------
    by_location : the errors of each location, by name
    places : mean and largest distance of every place of every shape
    spread : distances and their mass, for quantiles
    """

    def __init__(self, mechanism: Mechanism, weight: Floats, labels: dict[str, NDArray[np.int64]]):
        g = mechanism.groups
        self.mechanism, self.weight, self.labels = mechanism, weight, labels
        self.by_location = {name: np.zeros(len(weight)) for name in ("e_eu", *labels)}
        starts = starts_of(g.sizes)
        n = starts[-1]
        self.places = kernels.Places(starts, np.zeros(n), np.empty(n), np.empty(n))
        kernels.add_by_place(g.arrays, starts, weight, self.places.weight)
        self.spread: list[tuple[Floats, Floats]] = []
        self._by_shape = np.argsort(g.shape_of, kind="stable")
        self._ends = starts_of(np.bincount(g.shape_of, minlength=len(g.sizes)))

    def add(self, first: int, last: int, at: NDArray[np.int64], quantiles: bool) -> None:
        """Errors of the shapes first..last-1, whose matrices start at ``at``."""
        m = self.mechanism
        logs = m.log_matrices(np.arange(first, last))
        pairs = kernels.Pairs(at, logs, *(np.empty(logs.size) for _ in range(3)))
        scale = m.locations.scale
        kernels.shape_errors(first, last, m.groups.arrays, *scale, self.places, pairs)
        if quantiles:
            self.spread.append(_merged(pairs.distance, pairs.mass))
        which = self._by_shape[self._ends[first] : self._ends[last]]
        for name, label in self.labels.items():
            self._other_label(which, first, pairs, label, self.by_location[name])

    def _other_label(
        self,
        which: NDArray[np.int64],
        first: int,
        pairs: kernels.Pairs,
        label: NDArray[np.int64],
        out: Floats,
    ) -> None:
        """Pr(another label is released) of the locations of these groups."""
        g = self.mechanism.groups
        work = int((np.diff(g.starts)[which] ** 2).sum())

        def part(start: int, stop: int) -> None:
            kernels.label_errors(which, start, stop, first, g.arrays, pairs, label, out)

        run_ranges(part, which.size, smallest=max(1, (which.size << 18) // work))

    def result(self, wanted: list[float]) -> Utility:
        g, by_location, places = self.mechanism.groups, self.by_location, self.places
        kernels.spread_by_place(g.arrays, places.starts, places.mean, by_location["e_eu"])
        expected = {name: float(values @ self.weight) for name, values in by_location.items()}
        possible = self.weight > 0
        worst = int(np.argmax(np.where(possible, by_location["e_eu"], -1.0)))
        for values in by_location.values():
            values[g.address[:, 0] < 0] = np.nan
        return Utility(
            e_eu=expected["e_eu"],
            e_r=expected.get("e_r"),
            e_poi=expected.get("e_poi"),
            worst=Worst(float(by_location["e_eu"][worst]), worst),
            largest=float(places.largest[places.weight > 0].max()),
            quantiles=_weighted_quantiles(self.spread, wanted),
            by_location=by_location,
            count=int(np.count_nonzero(possible)),
        )


def location_weights(prior: ArrayLike | None, inside: NDArray[np.bool_]) -> Floats:
    """The prior over locations, summing to 1."""
    if not inside.any():
        raise InvalidDomain(
            "the domain is empty: nothing can be released, so there is no error to expect"
        )
    if prior is None:
        return inside / np.count_nonzero(inside)
    weight = check.prior(prior, inside.size)
    outside = np.flatnonzero((weight > 0) & ~inside)
    if outside.size:
        raise InvalidDomain(
            f"prior[{outside[0]}] = {weight[outside[0]]}, but location {outside[0]} is outside "
            "the domain, where nothing is "
            "released from: set the prior to 0 there, e.g. prior * domain.mask()"
        )
    weight = weight / weight.max()  # so that the sum cannot overflow
    return np.asarray(weight / weight.sum())


def _merged(value: Floats, mass: Floats) -> tuple[Floats, Floats]:
    """Distinct values, ascending, and the mass of each; values without mass are dropped."""
    some = mass > 0
    value, mass = value[some], mass[some]
    order = np.argsort(value, kind="stable")
    value, mass = value[order], mass[order]
    new = np.flatnonzero(np.diff(value, prepend=-1.0))
    return value[new], np.add.reduceat(mass, new) if new.size else mass


def _weighted_quantiles(
    spread: list[tuple[Floats, Floats]], wanted: Sequence[float]
) -> dict[float, float]:
    """For each q the smallest value with a cumulative probability of at least q."""
    if not wanted:
        return {}
    value, mass = _merged(*(np.concatenate(parts) for parts in zip(*spread, strict=True)))
    reached = np.cumsum(mass)
    at = np.searchsorted(reached, np.asarray(wanted) * reached[-1] - _ROUNDING)
    return dict(zip(wanted, value[at].tolist(), strict=True))

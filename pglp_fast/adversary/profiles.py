"""Attacks that people ask about: where somebody lives and works, which released trace is whose, and
which places somebody visits most. They need no model, and stand beside ``attack``'s Bayesian ones.

Each is tried twice: on the true traces (before) and on what was released (after)."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pglp_fast._util import validate as check
from pglp_fast.errors import InvalidParameter
from pglp_fast.space.locations import Locations, require_locations

Reals = NDArray[np.float64]
_NIGHT = (21, 6)  # hours from, to: at home
_OFFICE = (9, 17)  # at work
_CHUNK = 1 << 22  # distances held at once


@dataclass(frozen=True)
class ProfileRow:
    """How one attack does.

    Attributes
    ----------
    attack : "home", "work", "most visited" or "re-identified"
    before, after : share of persons for whom it succeeds (for "most visited": share of their
        places that is found), from true and from released traces
    chance : the same of a guess without any trace: the commonest answer of all persons, or one
        trace at random
    error_km : mean distance of the answer after release from the true one; NaN where there is none
    persons : of whom the attack can be tried
    """

    attack: str
    before: float
    after: float
    chance: float
    error_km: float
    persons: int


@dataclass(frozen=True)
class ProfileTable:
    """Attacks on persons, before and after release; ``table["home"]`` picks one."""

    rows: tuple[ProfileRow, ...]

    def __iter__(self) -> Iterator[ProfileRow]:
        return iter(self.rows)

    def __getitem__(self, attack: str) -> ProfileRow:
        names = [row.attack for row in self.rows]
        return self.rows[names.index(check.choice(attack, "attack", names))]

    def __str__(self) -> str:
        lines = [f"{'attack':15}{'before':>9}{'after':>9}{'chance':>9}{'off by km':>12}{'of':>9}"]
        for r in self.rows:
            shares = "".join(
                f"{'-':>9}" if np.isnan(v) else f"{100 * v:7.1f} %"
                for v in (r.before, r.after, r.chance)
            )
            off = "-" if np.isnan(r.error_km) else f"{r.error_km:.3f}"
            lines.append(f"{r.attack:15}{shares}{off:>12}{r.persons:9,}")
        return "\n".join(lines)


def profile_attacks(
    locations: Locations,
    truth: ArrayLike,
    released: ArrayLike,
    *,
    hours: ArrayLike | None = None,
    known: int = 4,
    top: int = 3,
    rng: int = 0,
) -> ProfileTable:
    """Home, work, most visited places and re-identification, before and after release.

    Parameters
    ----------
    locations : Grid or Points
    truth, released : array_like of int
        (persons, T) cells, -1 for none. For ``released`` also any guesses, such as
        ``pf.attack(...).bayes``: what a stronger adversary starts from.
    hours : array_like of float, optional
        Local hour of day, 0 to 24, of each step: (T,) or (persons, T). Home is the cell of most
        steps from 21 to 6 o'clock, work that of most steps from 9 to 17. Without hours home is the
        cell of most steps, and work is not looked for.
    known : int
        Points (step and true cell) that the adversary knows of a person, drawn at random; the
        trace nearest to them is taken for that person's.
    top : int
        Most visited places that are looked for.
    rng : int
        Seed of the known points.

    Returns
    -------
    ProfileTable

    Notes
    -----
    Ties go to the lower cell; where several traces are equally near, the share of the right one
    among them counts. A step without a cell is as far as the map is wide.

    References
    ----------
    Y.-A. de Montjoye et al., Unique in the Crowd: The privacy bounds of human mobility, Scientific
    Reports 3 (2013). P. Golle and K. Partridge, On the Anonymity of Home/Work Location Pairs,
    Pervasive (2009).
    """
    size = require_locations(locations).size
    true, seen = (
        _cells(cells, size, name) for cells, name in ((truth, "truth"), (released, "released"))
    )
    if true.shape != seen.shape:
        raise InvalidParameter(
            f"truth has shape {true.shape}, released {seen.shape}: give one cell for each step"
        )
    check.whole(known, "known", 1)
    check.whole(top, "top", 1)
    clock = _hours(hours, true.shape)
    rows = [_place("home", locations, true, seen, _between(clock, *_NIGHT))]
    if clock is not None:
        rows.append(_place("work", locations, true, seen, _between(clock, *_OFFICE)))
    rows.append(_visited(true, seen, top, size))
    rows.append(_found_again(locations, true, seen, known, check.whole(rng, "rng", 0)))
    return ProfileTable(tuple(rows))


def _cells(values: ArrayLike, size: int, name: str) -> check.Cells:
    array = check.integers(values, name, InvalidParameter)
    if array.ndim != 2:
        raise InvalidParameter(f"{name} must be cells (persons, T), got shape {array.shape}")
    return check.cells_or_missing(
        array, size, error=InvalidParameter,
        where=lambda cell, u, t: f"{name} has {cell} for person {u} at step {t}",
    )  # fmt: skip


def _hours(values: ArrayLike | None, shape: tuple[int, ...]) -> Reals | None:
    if values is None:
        return None
    array = check.floats(values, "hours")
    if array.shape not in (shape, shape[1:]) or not ((array >= 0) & (array <= 24)).all():
        raise InvalidParameter(
            f"hours must be 0 to 24, one for each step: shape {shape[1:]} or {shape}, got "
            f"{array.shape}"
        )
    return np.broadcast_to(array, shape)


def _between(clock: Reals | None, start: int, stop: int) -> NDArray[np.bool_] | None:
    """Which steps are within hours of the day, over midnight too."""
    if clock is None:
        return None
    if start < stop:
        return np.asarray((clock >= start) & (clock < stop))
    return np.asarray((clock >= start) | (clock < stop))


def _ranked(cells: check.Cells, size: int, places: int) -> NDArray[np.int64]:
    """(persons, places) the most frequent cells of each person, -1 where there are fewer."""
    out = np.full((len(cells), places), -1, np.int64)
    who = np.repeat(np.arange(len(cells)), (cells >= 0).sum(axis=1))
    keys, counts = np.unique(who * np.int64(size) + cells[cells >= 0], return_counts=True)
    person, cell = np.divmod(keys, size)
    order = np.lexsort((cell, -counts, person))
    person, cell = person[order], cell[order]
    rank = np.arange(len(person)) - np.searchsorted(person, person)
    out[person[rank < places], rank[rank < places]] = cell[rank < places]
    return out


def _place(
    name: str,
    locations: Locations,
    true: check.Cells,
    seen: check.Cells,
    when: NDArray[np.bool_] | None,
) -> ProfileRow:
    """The cell of most steps at given hours."""
    own, found = (
        _ranked(cells if when is None else np.where(when, cells, -1), locations.size, 1)[:, 0]
        for cells in (true, seen)
    )
    has = own >= 0
    own, found = own[has], found[has]
    if not own.size:
        return ProfileRow(name, np.nan, np.nan, np.nan, np.nan, 0)
    common = np.bincount(own).max() / len(own)
    told = found >= 0
    off = float(locations.distance(own[told], found[told]).mean()) if told.any() else np.nan
    return ProfileRow(name, 1.0, float((own == found).mean()), float(common), off, len(own))


def _visited(true: check.Cells, seen: check.Cells, top: int, size: int) -> ProfileRow:
    """Share of the most visited places that are among the most visited of the release."""
    own, found = _ranked(true, size, top), _ranked(seen, size, top)
    has = own[:, 0] >= 0
    own, found = own[has], found[has]
    if not len(own):
        return ProfileRow("most visited", np.nan, np.nan, np.nan, np.nan, 0)
    common = _ranked(true.reshape(1, -1), size, top)

    def share(guess: NDArray[np.int64]) -> float:
        hit = (own[:, :, None] == guess[:, None, :]).any(axis=2) & (own >= 0)
        return float((hit.sum(axis=1) / (own >= 0).sum(axis=1)).mean())

    return ProfileRow("most visited", 1.0, share(found), share(common), np.nan, len(own))


def _found_again(
    locations: Locations, true: check.Cells, seen: check.Cells, known: int, seed: int
) -> ProfileRow:
    """Share of persons whose trace is the nearest to a few points known of them."""
    has = np.flatnonzero((true >= 0).sum(axis=1) >= known)
    if not has.size:
        return ProfileRow("re-identified", np.nan, np.nan, np.nan, np.nan, 0)
    draw = np.random.default_rng(seed).random((len(has), true.shape[1]))
    draw[true[has] < 0] = 2.0  # steps without a place are not known
    steps = np.argsort(draw, axis=1, kind="stable")[:, :known]
    before, after = (_nearest(locations, true, cells, has, steps) for cells in (true, seen))
    return ProfileRow("re-identified", before, after, 1 / len(true), np.nan, len(has))


def _nearest(
    locations: Locations,
    true: check.Cells,
    cells: check.Cells,
    persons: NDArray[np.intp],
    steps: NDArray[np.intp],
) -> float:
    """Share of persons whose own trace is nearest to their known points; of ties, their share."""
    xy = locations.lattice * np.asarray(locations.scale)
    far = float(np.hypot(*np.ptp(xy, axis=0)))
    share, part = 0.0, max(1, _CHUNK // (len(cells) * steps.shape[1]))
    for begin in range(0, len(persons), part):
        who, when = persons[begin : begin + part], steps[begin : begin + part]
        points = xy[true[who[:, None], when]]  # (persons, known, 2)
        there = cells[:, when].transpose(1, 0, 2)  # (persons, candidates, known)
        away = np.hypot(*(xy[there] - points[:, None]).transpose(3, 0, 1, 2))
        total = np.where(there >= 0, away, far).sum(axis=2)
        best = total.min(axis=1, keepdims=True)
        near = total <= best * (1 + 1e-12) + 1e-12
        share += float((near[np.arange(len(who)), who] / near.sum(axis=1)).sum())
    return share / len(persons)

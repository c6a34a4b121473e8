"""Policies about single places: those to hide, and those to disclose."""

from collections.abc import Mapping
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pglp_fast._util import validate as check
from pglp_fast._util.arrays import place_in_run
from pglp_fast.errors import InvalidPolicy
from pglp_fast.space.locations import Locations, require_locations, require_same_map

from .domain import Domain
from .graph import PolicyGraph, require_policy

_FARTHER = 1.0 + 1e-9  # beyond rounding: whoever is as far as the k-th nearest is looked at


def hide(
    locations: Locations,
    cells: ArrayLike,
    k: int = 8,
    *,
    base: PolicyGraph | None = None,
    among: ArrayLike | None = None,
) -> PolicyGraph:
    """Each sensitive place joined with its k nearest others.

    Parameters
    ----------
    cells : the sensitive locations, by number or as a mask
    k : how many others each is joined with; Euclidean in km, ties to the lower index
    base : a policy that holds beside; else locations that are not joined here may be disclosed
    among : the locations that may be alternatives, by number or as a mask: other places of the same
        kind, or all that are not sensitive; every other location if None
    """
    sensitive = cells_of(cells, require_locations(locations), "cells")
    others = (
        np.arange(locations.size, dtype=check.CELL)
        if among is None
        else cells_of(among, locations, "among")
    )
    k = check.whole(k, "k", 1)
    at_hand = len(others) - int(np.isin(sensitive, others).any())
    if len(sensitive) and k > at_hand:
        raise InvalidPolicy(
            f"k = {k}, but a sensitive place has {at_hand} others to be joined with: ask for fewer"
        )
    pairs = _nearest_pairs(locations, sensitive, others, k)
    if base is None:
        return PolicyGraph.from_edges(locations, pairs)
    require_same_map(
        require_policy(base).locations, locations, "the base policy and the map", InvalidPolicy
    )
    return base.with_edges(pairs)


@overload
def contact_tracing(base: PolicyGraph, disclosed: ArrayLike | Domain) -> PolicyGraph: ...
@overload
def contact_tracing(base: PolicyGraph, disclosed: Mapping[str, Any]) -> dict[str, PolicyGraph]: ...
def contact_tracing(base: PolicyGraph, disclosed: Any) -> PolicyGraph | dict[str, PolicyGraph]:
    """``base`` without the edges at the locations that must be disclosed: who is there is released
    as they are, and all others stay as protected from each other as they were.

    Parameters
    ----------
    disclosed : the locations, by number, as a mask or as a Domain; or, where flags change with
        time, a mapping from names to such sets: then policies by these names, for
        ``TraceReleaser`` or a plan, with a schedule that says when each holds

    Notes
    -----
    The paper's policy for contact tracing (G_c). A location all of whose neighbours are disclosed
    has no edges left, and is disclosed too: ``describe`` counts those.
    """
    if isinstance(disclosed, Mapping):
        return {str(name): contact_tracing(base, some) for name, some in disclosed.items()}
    locations = require_policy(base).locations
    if isinstance(disclosed, Domain):
        return base.constrain(~disclosed)
    return base.constrain(~Domain(locations, cells_of(disclosed, locations, "disclosed")))


def cells_of(cells: Any, locations: Locations, name: str) -> check.Cells:
    """Locations that are given by number or by a mask, ascending, each once."""
    array = check.as_array(cells, name, InvalidPolicy)
    if array.dtype != bool:
        return np.unique(check.cells(array, locations.size, name, error=InvalidPolicy))
    if array.size != locations.size:
        raise InvalidPolicy(
            f"{name} is a mask of {array.size}: give one boolean for each of the "
            f"{locations.size} locations"
        )
    return np.flatnonzero(array.reshape(-1)).astype(check.CELL)


def _nearest_pairs(
    locations: Locations, places: check.Cells, others: check.Cells, k: int
) -> NDArray[np.int32]:
    """Each of ``places`` with the k nearest of ``others``, itself left out."""
    from scipy.spatial import cKDTree  # here: it would slow down "import pglp_fast"

    if not len(places):
        return np.empty((0, 2), np.int32)
    lattice, stretch = locations.lattice.astype(np.int64), locations.stretch
    unit = np.array([1.0, stretch**0.5])
    tree = cKDTree(lattice[others] * unit)
    at = lattice[places] * unit
    # one more than k: the place itself may be among them
    reach = tree.query(at, [min(k + 1, len(others))])[0][:, 0] * _FARTHER
    found = tree.query_ball_point(at, reach)
    counts = np.array([len(each) for each in found])
    near = others[np.concatenate([np.asarray(each, np.int64) for each in found])]
    whose = np.repeat(np.arange(len(places)), counts)
    away = lattice[near] - lattice[places[whose]]
    distance = away[:, 0] ** 2 + stretch * away[:, 1] ** 2
    keep = near != places[whose]
    whose, near, distance = whose[keep], near[keep], distance[keep]
    order = np.lexsort((near, distance, whose))
    whose, near = whose[order], near[order]
    first = place_in_run(whose) < k
    return np.stack([places[whose[first]], near[first]], axis=1)

"""All that the page's script reads, and all figures, for other programs."""

from typing import Any

import numpy as np

from pglp_fast.policy.graph import PolicyGraph
from pglp_fast.space.locations import Locations

from . import picture
from .measures import Figures


def embedded(
    f: Figures, words: Figures, graph: PolicyGraph, users: list[Figures], steps: list[str] | None
) -> Figures:
    place, lines = dict(f["map"]), picture.outline(graph)
    if place["kind"] == "points":
        place |= _used_points(graph.locations, users, lines[0] if lines else [])
    return {
        "mode": f["mode"],
        "figures": f,
        "words": words,
        "map": place,
        "outline": lines,
        "steps": steps,
        "users": users,
    }


def _used_points(locations: Locations, users: list[Figures], ends: list[int]) -> Figures:
    """Coordinates of the locations that the map shows."""
    found = set(ends)
    for u in users:
        for name in ("true", "released", "guess"):
            found.update(np.asarray(u.get(name, [])).tolist())
        for runs in _given(u["domain"]):
            for first, count in zip(runs[::2], runs[1::2], strict=True):
                found.update(range(first, first + count))
        for belief in _given(u["belief"]):
            found.update(belief[::2])
        for edges in _given(u["edges"]):
            found.update(edges)
    cells = np.array(sorted(found - {-1}), np.int64)
    xy = locations.lattice[cells] * np.asarray(locations.scale)
    x0, y0 = locations.offset_km
    return {
        "cells": cells,
        "x": np.round(xy[:, 0], 6),
        "y": np.round(xy[:, 1], 6),
        "x0": x0,
        "y0": y0,
    }


def _given(values: list[Any]) -> list[Any]:
    return [v for v in values if v is not None]

"""A map to move and zoom in: one HTML file that opens offline."""

import base64
import hashlib
import json
import os
import re
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import ArrayLike, NDArray

import pglp_fast as pf
from pglp_fast._util import validate as check
from pglp_fast._util.json_values import plain
from pglp_fast._util.storage import replacing
from pglp_fast.policy.graph import require_policy
from pglp_fast.space.locations import Locations, require_locations, require_same_map

from .maps import is_skewed, one_each
from .style import MAX_EDGES

MAX_LOCATIONS = 1_000_000
_INKS = 4  # colours of dots and lines
_OSM = "https://tile.openstreetmap.org/{z}/{x}/{y}.png"
_OSM_CREDIT = "Background: © OpenStreetMap contributors"


class InteractiveMap:
    """A map in one HTML file; notebooks show it.

    Attributes
    ----------
    html : the whole file
    """

    def __init__(self, html: str):
        self.html = html

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the file; it appears complete or not at all."""
        out = Path(path)
        if out.suffix.lower() not in (".html", ".htm"):
            raise pf.InvalidParameter(f"{out}: name the map .html")
        if out.exists() and not overwrite:
            raise pf.InvalidParameter(f"{out} is there: overwrite=True replaces it")
        with replacing(out) as beside:
            Path(beside).write_text(self.html, encoding="utf-8")
        return out

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{escape(self.html)}" width="100%" height="480" '
            'style="border: 0" title="map"></iframe>'
        )


def interactive_map(
    locations: Locations,
    *,
    values: ArrayLike | Mapping[str, ArrayLike] | None = None,
    policy: pf.PolicyGraph | None = None,
    points: Mapping[str, ArrayLike] | None = None,
    traces: Mapping[str, ArrayLike] | None = None,
    tiles: bool | str = False,
    title: str = "Map",
) -> InteractiveMap:
    """A map to move and zoom in, with latitude, longitude and a scale bar.

    Parameters
    ----------
    locations : Grid or Points, of at most a million locations
    values : one value for each location, or several such by name; NaN is left blank
    policy : its components are outlined; edges outside cliques are drawn where they are few
    points : cells by name, such as ``{"released": cells}``: a dot for each place, larger for more
    traces : cells by name in the order of time, -1 for none: a line each
    tiles : False: nothing is fetched, the file opens offline. True: streets from OpenStreetMap as a
        background, where the reader is online; or the address of another server, with {z}, {x}, {y}
    title : shown above the list of layers

    Returns
    -------
    InteractiveMap : ``.save("map.html")``; a notebook shows it

    Notes
    -----
    Whoever gets the file gets all that is in it: put true places in only for those who may know
    them. With ``tiles``, the server of the tiles learns which part of the world is looked at.
    """
    require_locations(locations)
    if locations.size > MAX_LOCATIONS:
        raise pf.TooLarge(
            f"{locations.size:,} locations are too many for a browser: at most {MAX_LOCATIONS:,}"
        )
    named = values if isinstance(values, Mapping) else {"value": values}
    given = {name: v for name, v in named.items() if v is not None}
    layers = [
        _values(locations, name, array, k == 0) for k, (name, array) in enumerate(given.items())
    ]
    if policy is not None:
        layers.append(_policy(locations, policy))
    ink = 0
    for kind, some in (("points", points or {}), ("trace", traces or {})):
        for name, cells in some.items():
            array = check.cells_or_missing(cells, locations.size).reshape(-1)
            packed = _packed(array.astype("<i4"))
            layer = {"kind": kind, "name": name, "cells": packed, "ink": ink % _INKS}
            if kind == "trace":  # those below stand out around those on top
                layer["radius"] = 3.5 + 2.5 * (len(some) - 1 - list(some).index(name))
            layers.append(layer)
            ink += 1
    data = {**_place(locations), "layers": layers, "tiles": _tiles(tiles, locations)}
    return InteractiveMap(_page(title, data))


def _packed(array: NDArray[Any]) -> str:
    return base64.b64encode(array.tobytes()).decode()


def _values(locations: Locations, name: str, values: ArrayLike, on: bool) -> dict[str, Any]:
    array = one_each(locations, values, f"values[{name!r}]")
    known = array[np.isfinite(array)]
    log = is_skewed(known)
    shown = known[known > 0] if log else known
    ends = (float(shown.min()), float(shown.max())) if shown.size else (0.0, 1.0)
    # counts: nothing is there where there is none
    counts = bool(known.size and known.min() >= 0 and (known == 0).any())
    return {
        "kind": "values", "name": name, "on": on, "values": _packed(array.astype("<f4")),
        "low": ends[0], "high": ends[1], "log": log, "zero": "blank" if counts else "shown",
    }  # fmt: skip


def _policy(locations: Locations, graph: pf.PolicyGraph) -> dict[str, Any]:
    require_policy(graph)
    require_same_map(graph.locations, locations, "the policy and the map", pf.InvalidPolicy)
    label = np.where(graph.degrees() > 0, graph.components, -1)
    extra = graph.extra_edges() if isinstance(locations, pf.Grid) else graph.edges()
    layer = {"kind": "policy", "name": "policy", "labels": _packed(label.astype("<i4"))}
    if 0 < len(extra) <= MAX_EDGES:
        layer["edges"] = _packed(extra.astype("<i4"))
    elif len(extra):
        layer["name"] = f"policy (its {len(extra):,} edges are too many to draw)"
    return layer


def _place(locations: Locations) -> dict[str, Any]:
    """Where the locations lie: in degrees where the map has them, else in km."""
    projection, centres = locations.projection, locations.centres_km()
    frame = "km" if projection is None else "degrees"
    if isinstance(locations, pf.Grid):
        half = np.asarray(locations.scale) / 2
        corners = np.array([centres[0] - half, centres[-1] + half])
        if projection is not None:
            corners = projection.to_latlon(corners)[:, ::-1]
            corners[1, 0] += 360 if corners[1, 0] < corners[0, 0] else 0  # across 180 degrees
        step = (corners[1] - corners[0]) / (locations.cols, locations.rows)
        grid = {"rows": locations.rows, "cols": locations.cols, "lon0": corners[0, 0]}
        grid |= {"lat0": corners[0, 1], "dlon": step[0], "dlat": step[1]}
        return {"frame": frame, "grid": grid}
    xy = centres if projection is None else projection.to_latlon(centres)[:, ::-1]
    first = xy[0]  # float32 holds what is left to a metre
    x, y = (_packed(axis.astype("<f4")) for axis in (xy - first).T)
    return {"frame": frame, "x": x, "y": y, "x0": first[0], "y0": first[1]}


def _tiles(tiles: bool | str, locations: Locations) -> dict[str, Any] | None:
    if tiles is False:
        return None
    if locations.projection is None:
        raise pf.InvalidParameter("this map has no latitude and longitude: it has no tiles")
    if tiles is True:
        return {"url": _OSM, "credit": _OSM_CREDIT, "most": 19}
    address = urlsplit(tiles) if isinstance(tiles, str) else None
    sound = address is not None and re.fullmatch(r"https?://[\w.:-]+", _origin(address))
    if not sound or not all(part in str(tiles) for part in ("{z}", "{x}", "{y}")):
        raise pf.InvalidParameter(
            f"tiles must be True, False or an address with {{z}}, {{x}} and {{y}}, got {tiles!r}"
        )
    assert address is not None
    return {"url": tiles, "credit": f"Background: {address.netloc}", "most": 19}


def _origin(address: Any) -> str:
    return f"{address.scheme}://{address.netloc}"


def _page(title: str, data: dict[str, Any]) -> str:
    """The whole file: only its own script may run, and nothing but tiles may be fetched."""
    js, tiles = _part("interactive.js"), data["tiles"]
    digest = base64.b64encode(hashlib.sha256(js.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    policy += f"; img-src {_origin(urlsplit(tiles['url']))}" if tiles else ""
    text = json.dumps(plain(data), separators=(",", ":"), allow_nan=False)
    for sign, code in (("&", "\\u0026"), ("<", "\\u003c"), (">", "\\u003e")):
        text = text.replace(sign, code)
    parts = {
        "title": escape(str(title)), "css": _part("interactive.css"), "js": js,
        "data": text, "policy": policy,
        # servers of tiles want to know who asks; a file on disk says nothing but its name
        "referrer": "strict-origin-when-cross-origin" if tiles else "no-referrer",
    }  # fmt: skip
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], _part("interactive.html"))


def _part(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")

"""Released places as points, as GeoParquet has them: well-known binary, in degrees."""

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pglp_fast._util.packages import Later

pa, pc = Later("pyarrow"), Later("pyarrow.compute")
_POINT = np.dtype([("order", "u1"), ("kind", "<u4"), ("x", "<f8"), ("y", "<f8")])


def wkb_points(lat: NDArray[np.float64], lon: NDArray[np.float64], none: NDArray[np.bool_]) -> Any:
    """Points at these places; null where there is none."""
    points = np.empty(len(lat), _POINT)
    points["order"], points["kind"], points["x"], points["y"] = 1, 1, lon, lat
    octets = pa.py_buffer(points.tobytes())
    fixed = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(_POINT.itemsize), len(points), [None, octets]
    )
    whole = fixed.cast(pa.binary())
    return pc.if_else(pa.array(none), pa.scalar(None, pa.binary()), whole)


def geo_metadata(noted: bytes | None, name: str) -> bytes:
    """What GeoParquet says of the column of released points; ``noted``: of the others."""
    try:
        known = json.loads(noted or b"{}")
        columns = dict(known.get("columns", {}))
    except (ValueError, AttributeError, TypeError):
        columns = {}
    columns[name] = {"encoding": "WKB", "geometry_types": ["Point"]}
    return json.dumps({"version": "1.0.0", "primary_column": name, "columns": columns}).encode()


def are_points(schema: Any, at: dict[str, int]) -> bool:
    """Whether a table's places are points of a geographic format, not text."""
    if "geometry" not in at:
        return False
    kind = schema.field(at["geometry"]).type
    is_a = pa.types
    return not (is_a.is_string(kind) or is_a.is_large_string(kind) or is_a.is_string_view(kind))

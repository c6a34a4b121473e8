"""Which column is which: the names that mobility libraries use, or those the user gives."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import InvalidTable

NEEDED = ("user", "time", "lat", "lon")
OPTIONAL = ("trajectory", "venue", "category")  # columns of labels, taken along where there are any
LABELS, NUMBERS = ("user", *OPTIONAL), ("lat", "lon", "visits")

# in lower case and without "_", "-", "." and spaces
_NAMES = {
    "user": (
        "user",
        "uid",
        "userid",
        "agent",
        "agentid",
        "device",
        "deviceid",
        "person",
        "personid",
        "individual",
        "individualid",
    ),
    "time": (
        "time",
        "t",
        "datetime",
        "timestamp",
        "trackedat",
        "timeutc",
        "utctimestamp",
        "utctime",
        "checkintime",
        "datetimeutc",
    ),
    "lat": ("lat", "latitude"),
    "lon": ("lon", "lng", "long", "longitude"),
    "trajectory": ("trajectory", "trajectoryid", "trajid", "tid", "tripid"),
    "venue": ("venue", "venueid", "poi", "poiid", "locationid", "placeid"),
    "category": ("category", "venuecategory", "venuecategoryname", "poicategory"),
    "geometry": ("geometry", "geom"),
}
_EXAMPLE = 'columns={"user": ..., "time": ..., "lat": ..., "lon": ...}'


def _plain(name: str) -> str:
    return "".join(c for c in name.strip().lower() if c not in "_-. ")


def place_columns(names: Sequence[str]) -> list[int]:
    """Numbers of all columns that look like a latitude, a longitude or a point, used or not."""
    known = {*_NAMES["lat"], *_NAMES["lon"], *_NAMES["geometry"]}
    return [at for at, name in enumerate(names) if _plain(str(name)) in known]


def match(names: Sequence[str], columns: Mapping[str, Any] | None, source: str, *, geometry: bool = False) -> dict[str, int]:
    """Number of the column for each role, from what the user says and else by name.

    The time of day may stand in a column of its own: ``columns={"time": ("date", "clock")}`` gives "time" and "clock".
    With ``geometry``, a column of points may stand for both lat and lon.
    """
    given = dict(columns or {})
    strange = set(given) - set(NEEDED) - set(OPTIONAL) - ({"geometry"} if geometry else set())
    if strange:
        raise InvalidTable(f"columns has no role {sorted(strange)[0]!r}: the roles are {', '.join(NEEDED + OPTIONAL)}")
    out: dict[str, int] = {}
    for role, wanted in given.items():
        if wanted is None:
            continue
        parts = wanted if role == "time" and isinstance(wanted, tuple | list) and len(wanted) == 2 else (wanted,)
        for part_role, part in zip(("time", "clock") if len(parts) == 2 else (role,), parts, strict=True):
            out[part_role] = _number_of(names, part, role, source)
    plain = [_plain(str(name)) for name in names]
    points = geometry and ("geometry" in out or not {"lat", "lon"} & set(out))
    for role in (*NEEDED, *OPTIONAL, *(("geometry",) if points else ())):
        if role in given:
            continue
        found = [at for name in _NAMES[role] for at, other in enumerate(plain) if other == name and at not in out.values()]
        if len(found) > 1 and role in NEEDED:
            which = ", ".join(repr(names[at]) for at in found)
            raise InvalidTable(
                f"{source}: {which} may all be the {role}: say which with columns={{{role!r}: {names[found[0]]!r}}}"
            )
        if found:
            out[role] = found[0]
    if "lat" in out and "lon" in out:
        out.pop("geometry", None)
    elif "geometry" in out:
        out.pop("lat", None), out.pop("lon", None)
    for role, at in out.items():
        twin = next((other for other, column in out.items() if column == at and other != role), None)
        if twin:
            raise InvalidTable(f"{source}: column {names[at]!r} cannot be both the {role} and the {twin}")
    missing = [role for role in NEEDED if role not in out and not (role in ("lat", "lon") and "geometry" in out)]
    if missing:
        raise InvalidTable(
            f"{source}: no column for {', '.join(missing)} among {', '.join(map(repr, names)) or 'no columns at all'}: "
            f"name it with {_EXAMPLE}"
        )
    return out


def _number_of(names: Sequence[str], wanted: Any, role: str, source: str) -> int:
    if isinstance(wanted, int) and not isinstance(wanted, bool) and 0 <= wanted < len(names):
        return wanted
    found = [at for at, name in enumerate(names) if name == wanted]
    if len(found) != 1:
        there = "no column" if not found else "more than one column"
        raise InvalidTable(f"{source}: {there} {wanted!r} for the {role} among {', '.join(map(repr, names))}")
    return found[0]

"""Which column is which: the names that mobility libraries use, or those the user gives."""

from collections.abc import Mapping, Sequence
from typing import Any

from pglp_fast.errors import InvalidTable

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
    "geometry": ("geometry", "geom", "wkt"),
}
_EXAMPLE = 'columns={"user": ..., "time": ..., "lat": ..., "lon": ...}'


def _plain(name: str) -> str:
    return "".join(c for c in name.strip().lower() if c not in "_-. ")


def place_columns(names: Sequence[str]) -> list[int]:
    """Numbers of all columns that look like a latitude, a longitude or a point, used or not."""
    known = {*_NAMES["lat"], *_NAMES["lon"], *_NAMES["geometry"]}
    return [at for at, name in enumerate(names) if _plain(str(name)) in known]


def match(
    names: Sequence[str], columns: Mapping[str, Any] | None, source: str, *, geometry: bool = False
) -> dict[str, int]:
    """Number of the column for each role, from what the user says and else by name.

    The time of day may stand in a column of its own: ``columns={"time": ("date", "clock")}`` gives
    "time" and "clock". With ``geometry``, a column of points may stand for both lat and lon."""
    given = dict(columns or {})
    strange = set(given) - set(NEEDED) - set(OPTIONAL) - ({"geometry"} if geometry else set())
    if strange:
        raise InvalidTable(
            f"columns has no role {sorted(strange)[0]!r}: the roles are "
            f"{', '.join(NEEDED + OPTIONAL)}"
        )
    out = _named(names, given, source)
    points = geometry and ("geometry" in out or not {"lat", "lon"} & set(out))
    for role in (*NEEDED, *OPTIONAL, *(("geometry",) if points else ())):
        found = None if role in given else _found(names, role, out, source)
        if found is not None:
            out[role] = found
    if "lat" in out and "lon" in out:
        out.pop("geometry", None)
    elif "geometry" in out:
        out.pop("lat", None), out.pop("lon", None)
    for role, at in out.items():
        twin = next(
            (other for other, column in out.items() if column == at and other != role), None
        )
        if twin:
            raise InvalidTable(
                f"{source}: column {names[at]!r} cannot be both the {role} and the {twin}"
            )
    placed = ("lat", "lon") if "geometry" in out else ()
    missing = [role for role in NEEDED if role not in out and role not in placed]
    if missing:
        raise InvalidTable(
            f"{source}: no column for {', '.join(missing)} among "
            f"{', '.join(map(repr, names)) or 'no columns at all'}: name it with {_EXAMPLE}"
        )
    return out


def _named(names: Sequence[str], given: Mapping[str, Any], source: str) -> dict[str, int]:
    """Number of each column that the user names; two for the time give "time" and "clock"."""
    out: dict[str, int] = {}
    for role, wanted in given.items():
        if wanted is None:
            continue
        if role == "time" and isinstance(wanted, tuple | list) and len(wanted) == 2:
            out["time"], out["clock"] = (_number_of(names, part, role, source) for part in wanted)
        else:
            out[role] = _number_of(names, wanted, role, source)
    return out


def _found(names: Sequence[str], role: str, taken: dict[str, int], source: str) -> int | None:
    """Number of the column that has a usual name of the role, if there is one."""
    plain = [_plain(str(name)) for name in names]
    found = [
        at
        for name in _NAMES[role]
        for at, other in enumerate(plain)
        if other == name and at not in taken.values()
    ]
    if len(found) > 1 and role in NEEDED:
        which = ", ".join(repr(names[at]) for at in found)
        if len({str(names[at]) for at in found}) < len(found):
            raise InvalidTable(
                f"{source}: several columns are called {str(names[found[0]])!r}: give each its own "
                "name in the header line"
            )
        raise InvalidTable(
            f"{source}: {which} may all be the {role}: say which with columns={{{role!r}: "
            f"{names[found[0]]!r}}}"
        )
    return found[0] if found else None


def _number_of(names: Sequence[str], wanted: Any, role: str, source: str) -> int:
    if isinstance(wanted, int) and not isinstance(wanted, bool) and 0 <= wanted < len(names):
        return wanted
    found = [at for at, name in enumerate(names) if name == wanted]
    if len(found) != 1:
        there = "no column" if not found else "more than one column"
        raise InvalidTable(
            f"{source}: {there} {wanted!r} for the {role} among {', '.join(map(repr, names))}"
        )
    return found[0]

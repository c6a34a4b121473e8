"""Numbers and times that the text of an Arrow column spells.

Arrow's own casts read what is written the usual way. The rows that they refuse are looked at one by
one (numbers) or by pattern (times), so that each is read, missing, or known to be malformed."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pglp_fast._util.packages import Later
from pglp_fast._util.times import DAY_MS, NO_TIME, to_utc, zone_of

pa, pc = Later("pyarrow"), Later("pyarrow.compute")

MISSING = ("", "nan", "nat", "na", "n/a", "null", "none")  # in any case
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]

# patterns of RE2; the whole numbers are those that an int64 surely holds
_WHOLE, _SECONDS = r"^-?(\d{1,18}|[1-8]\d{18})$", f"^{_NUMBER.pattern}$"
_USUAL = r"^\d{4}-\d\d-\d\d([T ]\d\d:\d\d:\d\d(\.\d{1,6})?)?"  # as Arrow casts it
_USUAL_FORMS = {None: f"{_USUAL}$", "UTC": rf"{_USUAL}(Z|[-+]\d\d:?\d\d)$"}  # by zone
_CLOCK = r"(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,](?P<fraction>\d+))?)?"
_ZONE = r"(?P<utc>[Zz]|[Uu][Tt][Cc])|(?P<sign>[-+])(?P<ahead>\d\d)(?::?(?P<minutes>\d\d))?"
_ISO = (
    r"^(?P<year>\d{4})(?P<one>[-/])(?P<month>\d{1,2})(?P<two>[-/])(?P<day>\d{1,2})"
    rf"(?:[Tt ] *{_CLOCK} *(?:{_ZONE})?)?$"
)
_ENGLISH = (
    r"^[A-Za-z]{3} (?P<month>[A-Za-z]{3}) +(?P<day>\d{1,2}) +"
    rf"{_CLOCK} +(?:{_ZONE}) +(?P<year>\d{{4}})$"
)

_COORDINATE = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?"
_WKT = rf"^(?i:(?:srid=4326;)?point) *\( *(?P<x>{_COORDINATE}) +(?P<y>{_COORDINATE}) *\)$"
# white space as Python knows it, and byte order marks
_NO_LABEL = r"^[\x{09}-\x{0d}\x{1c}-\x{1f}\x{85}\x{feff}\p{Z}]*$"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Found = tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]]  # ms, sound, has a zone


def read_numbers(column: Any) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Numbers of a column of text, to the nearest double (NaN for nothing), and which are none."""
    text = _trimmed(column.fill_null(""))
    blank = pc.equal(text, "")
    given = pc.if_else(blank, "nan", text) if pc.any(blank).as_py() else text
    values = np.array(to_numpy(_cast_matching(given, _SECONDS, pa.float64())))
    bad = np.zeros(len(text), np.bool_)
    odd = np.flatnonzero(~np.isfinite(values) & ~to_numpy(blank))
    for row, written in zip(odd.tolist(), text.take(pa.array(odd)).to_pylist()):
        written = written.strip(" \t")
        if _NUMBER.fullmatch(written):
            values[row] = float(written)
        else:
            values[row], bad[row] = np.nan, written.lower() not in MISSING
    return values, bad


def read_times(column: Any, timezone: str) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Milliseconds since 1970 UTC of a column of text (NaT for nothing), and which are no times.

    ``timezone``: of times that do not say theirs."""
    text = _trimmed(column.fill_null(""))
    ms, known, zoned = _usual(text)
    for read in (_missing, _whole, _iso, _english, _seconds):
        rows = np.flatnonzero(~known)
        if not rows.size:
            break
        written = pc.ascii_trim(text.take(pa.array(rows)), " \t")
        ms[rows], known[rows], zoned[rows] = read(written)
    if timezone != "UTC":
        ms = np.where(zoned, ms, to_utc(ms, zone_of(timezone)))
    return ms, ~known


def read_times_as(
    column: Any, timezone: str, form: str
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The same, of times that are written in one form, as ``datetime.strptime`` has it."""
    coded = pc.ascii_trim(column.fill_null(""), " \t").dictionary_encode()
    found = [_moment(text, form) for text in coded.dictionary.to_pylist()]
    read = np.array(found, np.int64).reshape(-1, 3)[to_numpy(coded.indices)]
    ms, zoned, bad = read[:, 0].copy(), read[:, 1] > 0, read[:, 2] > 0
    local = ~zoned & (ms != NO_TIME)
    if timezone != "UTC" and local.any():
        ms[local] = to_utc(ms[local], zone_of(timezone))
    return ms, bad


def _moment(text: str, form: str) -> tuple[int, bool, bool]:
    """(ms since 1970, whether it has a zone, whether it is no time) of one text."""
    if text.lower() in MISSING:
        return NO_TIME, False, False
    try:
        read = datetime.strptime(text, form)
    except ValueError:
        return NO_TIME, False, True
    zoned = read.tzinfo is not None
    since = (read if zoned else read.replace(tzinfo=UTC)) - _EPOCH
    return since // timedelta(milliseconds=1), zoned, False


def read_wkt(column: Any) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Latitude and longitude of points such as "POINT (139.7 35.7)" (NaN for nothing), and which
    are none."""
    text = pc.ascii_trim(column.fill_null(""), " \t")
    found = pc.extract_regex(text, _WKT)
    blank = pc.is_in(pc.ascii_lower(text), pa.array((*MISSING, "point empty"), text.type))
    x, y = (pc.struct_field(found, name).fill_null("nan") for name in ("x", "y"))
    bad = ~to_numpy(pc.or_(found.is_valid(), blank))
    return to_numpy(y.cast(pa.float64())), to_numpy(x.cast(pa.float64())), bad


def _trimmed(text: Any) -> Any:
    """Without spaces around, if the first has some: if only others do, they are few."""
    first = "".join(text[:1].to_pylist())
    return text if first == first.strip(" \t") else pc.ascii_trim(text, " \t")


def to_numpy(column: Any) -> NDArray[Any]:
    return np.asarray(column.to_numpy(zero_copy_only=False))


def null_for_blank(text: Any) -> Any:
    """The column with null where the text is empty."""
    blank = pc.equal(text, "")
    return pc.if_else(blank, pa.scalar(None, text.type), text) if pc.any(blank).as_py() else text


def null_for_no_label(text: Any) -> Any:
    """The column with null where nothing is left of a text in its ``canonical`` spelling."""
    ends = pc.min_max(text).as_py()
    if ends["min"] is None or (ends["min"] >= "!" and ends["max"] < "\x7f"):
        return text  # all begin with a sign that is seen
    none = pc.match_substring_regex(text, _NO_LABEL)
    return pc.if_else(none, pa.scalar(None, text.type), text)


def usual_kind(text: str) -> Any | None:
    """The type that Arrow can cast such a time to."""
    zones = (zone for zone, pattern in _USUAL_FORMS.items() if re.match(pattern, text))
    return next((pa.timestamp("us", zone) for zone in zones), None)


def whole_times(values: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Milliseconds since 1970 of whole numbers of s, ms, us or ns, and which are no times.

    Up to 11 digits are seconds, 12 and 13 milliseconds, 15 and 16 microseconds, 18 and 19
    nanoseconds."""
    size = np.abs(values)
    seconds, ms = size < 10**11, size < 10**13
    us, ns = (size >= 10**14) & (size < 10**16), size >= 10**17
    out = np.select(
        [seconds, ms, us, ns],
        [np.where(seconds, values, 0) * 1000, values, values // 1000, values // 10**6],
    )
    return out, ~(ms | us | ns)


def seconds_to_ms(seconds: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Milliseconds of seconds since 1970 (NaT for NaN), and which are no times."""
    missing = np.isnan(seconds)
    bad = ~missing & ~(np.abs(seconds) < 1e11)
    out = np.floor(np.where(missing | bad, 0.0, seconds) * 1000 + 0.5).astype(np.int64)
    return np.where(missing, NO_TIME, out), bad


def _usual(text: Any) -> Found:
    """Times as Arrow casts them, if that is how the first is written: all with a zone, or all
    without."""
    given = null_for_blank(text)
    first = (given.drop_null() if given.null_count else given)[:1].to_pylist()
    kind = usual_kind(first[0]) if first else None
    zone = kind and kind.tz
    cast = (
        _cast_matching(given, _USUAL_FORMS[zone], kind)
        if kind
        else pa.nulls(len(text), pa.timestamp("us"))
    )
    there = to_numpy(cast.is_valid())
    us = to_numpy(cast.cast(pa.int64()).fill_null(0))
    known = there | to_numpy(given.is_null())
    return np.where(there, us // 1000, NO_TIME), known, np.full(len(text), zone is not None)


def _cast_matching(text: Any, pattern: str, kind: Any) -> Any:
    """A cast; if it fails, of the rows that match; if that fails, of none."""
    try:
        return text.cast(kind)
    except pa.ArrowInvalid:
        fine = pc.match_substring_regex(text, pattern)
    try:
        return pc.if_else(fine, text, pa.scalar(None, text.type)).cast(kind)
    except pa.ArrowInvalid:
        return pa.nulls(len(text), kind)


def _missing(text: Any) -> Found:
    found = pc.is_in(pc.ascii_lower(text), pa.array(MISSING, text.type))
    return np.full(len(text), NO_TIME), to_numpy(found), np.ones(len(text), np.bool_)


def _matching(text: Any, pattern: str, read: Callable[[Any], Any]) -> Found:
    """What ``read`` makes of the rows that match; they say themselves what zone they mean."""
    rows = np.flatnonzero(to_numpy(pc.match_substring_regex(text, pattern)))
    ms, sound = np.zeros(len(text), np.int64), np.zeros(len(text), np.bool_)
    ms[rows], bad = read(text.take(pa.array(rows)))
    sound[rows] = ~bad
    return ms, sound, np.ones(len(text), np.bool_)


def _whole(text: Any) -> Found:
    return _matching(text, _WHOLE, lambda found: whole_times(to_numpy(found.cast(pa.int64()))))


def _seconds(text: Any) -> Found:
    return _matching(text, _SECONDS, lambda found: seconds_to_ms(read_numbers(found)[0]))


def _iso(text: Any) -> Found:
    parts = pc.extract_regex(text, _ISO)
    ms, sound, zoned = _moments(parts, _numbers_of(parts, "month"))
    return ms, sound & to_numpy(pc.equal(*_fields(parts, "one", "two"))), zoned


def _english(text: Any) -> Found:
    parts = pc.extract_regex(text, _ENGLISH)
    (names,) = _fields(parts, "month")
    month = pc.index_in(pc.ascii_lower(names), pa.array(_MONTHS, names.type))
    return _moments(parts, to_numpy(month.fill_null(-1)).astype(np.int64) + 1)


def _fields(parts: Any, *names: str) -> list[Any]:
    """Columns of a struct; "" where it is null."""
    return [pc.struct_field(parts, name).fill_null("") for name in names]


def _numbers_of(parts: Any, name: str) -> NDArray[np.int64]:
    """A field as whole numbers; 0 where there is none."""
    (text,) = _fields(parts, name)
    return to_numpy(pc.if_else(pc.equal(text, ""), "0", text).cast(pa.int64()))


def _moments(parts: Any, month: NDArray[np.int64]) -> Found:
    """What the parts of dates and clock readings make. Second 60 is the next minute's 0."""
    year, day, hour, minute, second, ahead, minutes = (
        _numbers_of(parts, name)
        for name in ("year", "day", "hour", "minute", "second", "ahead", "minutes")
    )
    months = (year - 1970) * 12 + month - 1
    first, following = (
        m.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
        for m in (months, months + 1)
    )
    fraction, utc, sign = _fields(parts, "fraction", "utc", "sign")
    thousandths = pc.utf8_slice_codeunits(pc.ascii_rpad(fraction, 3, "0"), 0, 3)
    behind = np.where(to_numpy(pc.equal(sign, "-")), 1, -1) * (ahead * 60 + minutes) * 60_000
    ms = (first + day - 1) * DAY_MS + ((hour * 60 + minute) * 60 + second) * 1000 + behind
    sound = (month >= 1) & (month <= 12) & (day >= 1) & (day <= following - first)
    sound &= (hour <= 23) & (minute <= 59) & (second <= 60) & (ahead <= 15) & (minutes <= 59)
    sound &= to_numpy(pc.is_valid(parts))
    zoned = ~to_numpy(pc.and_(pc.equal(utc, ""), pc.equal(sign, "")))
    return ms + to_numpy(thousandths.cast(pa.int64())), sound, zoned

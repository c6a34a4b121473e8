"""Where released rows go: the columns that are kept, then the new ones."""

import json
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pglp_fast._util.packages import Later
from pglp_fast._util.storage import SECRET, replacing
from pglp_fast.errors import InvalidParameter
from pglp_fast.io.columns import match, place_columns
from pglp_fast.io.geo_write import Shapes

from .plan import Plan
from .released import EXPOSED, MALFORMED, STATUSES, STEP, SURROGATE, Added
from .source import FileSource, are_points
from .text_rows import TextFile

pa, pc, parquet = Later("pyarrow"), Later("pyarrow.compute"), Later("pyarrow.parquet")


class Shape(NamedTuple):
    """What a layout needs to know of a table in memory.

    Attributes
    ----------
    columns : names
    at : number of the column for each role
    points : whether places are points of a geographic format
    delimiter : between fields of a text file
    """

    columns: list[str]
    at: dict[str, int]
    points: bool
    delimiter: str = ""


def shape_of(schema: Any, plan: Plan, source: str) -> Shape:
    """Of an Arrow table."""
    at = match(schema.names, plan.columns, source, geometry=True)
    return Shape(schema.names, at, are_points(schema, at))


class Layout:
    """Which columns of a table stay, and what is added.

    Attributes
    ----------
    kept, left : numbers of the columns that stay, and names of the others
    truth : whether true places stay, or a part of them: half of a place is a place too
    names : of the new columns
    points : whether places go out as points too, because they came in so
    """

    def __init__(self, table: Shape | FileSource, plan: Plan, source: str):
        self.grid, columns, at = plan.map, list(table.columns), table.at
        if plan.keep == "all":
            wanted = set(range(len(columns)))
        elif plan.keep is None:
            wanted = {at[role] for role in ("user", "time", "clock") if role in at}
        else:
            strange = [name for name in plan.keep if name not in columns]
            if strange:
                raise InvalidParameter(
                    f"{source} has no column {strange[0]!r} to keep, among "
                    f"{', '.join(map(repr, columns))}"
                )
            wanted = {k for k, name in enumerate(columns) if name in plan.keep}
        self.all = plan.keep == "all"
        self.kept = sorted(wanted)
        self.left = [name for k, name in enumerate(columns) if k not in wanted]
        place = {at[role] for role in ("lat", "lon", "geometry") if role in at}
        self.truth = not wanted.isdisjoint(place | set(place_columns(columns)))
        # exposed follows from what the adversary knows; surrogate from where somebody truly was: it
        # is written only beside the true places
        flags = () if plan.model is None else ("surrogate", "exposed")[not wanted >= place :]
        self._bits = [{"surrogate": SURROGATE, "exposed": EXPOSED}[flag] for flag in flags]
        self._policies = plan.policy_names if plan.policies else ()
        chosen = ["policy"] * bool(plan.policies) + ["epsilon"] * plan.many_epsilons
        self._chosen = chosen  # public: they follow from who, when and what was released
        self._flags = len(flags)
        self.points = table.points
        last = ("geometry",) if self.points else ()
        new = ("lat", "lon", "cell", "status", *flags, *chosen, *last)
        self.names = [plan.prefix + n for n in new]
        self._status = pa.array(STATUSES)
        self._places = {-1: ["", "", ""]}  # of cells, as text
        bad = next((c for c in plan.prefix if c in '"\r\n\0' or c == table.delimiter), None)
        if bad is not None:
            raise InvalidParameter(
                f"prefix {plan.prefix!r} has {bad!r} in it, which a name in the header line "
                "cannot have"
            )
        taken = [name for name in self.names if name in columns]
        if taken:
            raise InvalidParameter(
                f"{source} has a column {taken[0]!r} already: choose another start of the new "
                "names with prefix"
            )

    def fields(self) -> list[Any]:
        """Names and types of the new columns."""
        status = pa.dictionary(pa.int8(), pa.string())
        kinds = [pa.float64(), pa.float64(), pa.int32(), status, *[pa.bool_()] * self._flags]
        policy = pa.dictionary(pa.int16(), pa.string())
        kinds += [{"policy": policy, "epsilon": pa.float64()}[name] for name in self._chosen]
        kinds += [pa.binary()] if self.points else []
        return [pa.field(name, kind) for name, kind in zip(self.names, kinds, strict=True)]

    def added(self, added: Added) -> list[Any]:
        """The new columns."""
        none = added.cells < 0
        distinct, which = np.unique(np.where(none, 0, added.cells), return_inverse=True)
        place = self.grid.latlon(distinct).T[:, which.reshape(-1)]
        place[:, none] = np.nan
        new = [pa.array(axis, mask=none) for axis in place]
        new.append(pa.array(added.cells, mask=none))
        status = pa.array(added.status.astype(np.int8))
        new.append(pa.DictionaryArray.from_arrays(status, self._status))
        if added.flags is not None:
            silent = none | (added.status != STEP)
            new += [pa.array((added.flags & bit) > 0, mask=silent) for bit in self._bits]
        if added.choice is not None and "policy" in self._chosen:
            number = pa.array(added.choice.policy, mask=none)
            new.append(pa.DictionaryArray.from_arrays(number, pa.array(self._policies)))
        if added.choice is not None and "epsilon" in self._chosen:
            new.append(pa.array(added.choice.epsilon, mask=none))
        return [*new, Shapes.points(*place).wkb()] if self.points else new

    def old(self, raw: Any, status: NDArray[np.uint8]) -> list[Any]:
        """The columns that stay. Of rows that cannot be read nothing does, unless everything
        does: such a row may hold a place anywhere."""
        columns = [raw.column(k) for k in self.kept]
        bad = status == MALFORMED
        if self.all or not bad.any():
            return columns
        mask = pa.array(bad)
        return [_blanked(c, mask) for c in columns]

    def tails(self, added: Added, delimiter: str) -> Any:
        """The new columns as text, all in one: a dictionary of few, for many rows."""
        flags = np.zeros(len(added.cells), np.uint8) if added.flags is None else added.flags
        shown = flags & (SURROGATE | EXPOSED)  # may be columns; repairs are only counted
        key = ((added.cells.astype(np.int64) + 1) * 16 + added.status) * 4 + shown
        held = added.choice
        if held is None:
            distinct, which = np.unique(key, return_inverse=True)
            texts = [self._tail(k, delimiter) for k in distinct.tolist()]
        else:
            epsilon = np.where(added.cells < 0, 0.0, held.epsilon)
            keys = np.stack([key, held.policy.astype(np.int64), epsilon.view(np.int64)], 1)
            rows, which = np.unique(keys, axis=0, return_inverse=True)
            texts = [
                self._tail(k, delimiter) + self._choice(k >= 64, policy, value, delimiter)
                for (k, policy), value in zip(
                    rows[:, :2].tolist(), np.ascontiguousarray(rows[:, 2]).view(np.float64).tolist()
                )
            ]
        return pa.array(texts, pa.large_string()).take(pa.array(which.reshape(-1)))

    def _choice(self, told: bool, policy: int, epsilon: float, delimiter: str) -> str:
        """Policy and epsilon of a row as text."""
        values = {"policy": self._policies[policy] if self._policies else "", "epsilon": epsilon}
        return "".join(
            f"{delimiter}{_quoted(str(values[name]), delimiter) if told else ''}"
            for name in self._chosen
        )

    def _tail(self, key: int, delimiter: str) -> str:
        cell, status, flags = key // 64 - 1, key // 4 % 16, key % 4
        if cell not in self._places:
            lat, lon = self.grid.latlon(cell).tolist()
            self._places[cell] = [f"{lat:.6f}", f"{lon:.6f}", str(cell)]
        told = cell >= 0 and status == STEP
        flagged = [str(bool(flags & bit)).lower() if told else "" for bit in self._bits]
        return delimiter.join([*self._places[cell], STATUSES[status], *flagged])


def _blanked(column: Any, mask: Any) -> Any:
    """A column without the values of some rows; a dictionary forgets them too."""
    kind, text = column.type, pa.large_string()
    if pa.types.is_string_view(kind):  # of which Arrow cannot choose
        return _blanked(column.cast(text), mask).cast(kind)
    if pa.types.is_dictionary(kind) and pa.types.is_string_view(kind.value_type):
        return _blanked(column.cast(pa.dictionary(kind.index_type, text)), mask).cast(kind)
    return pc.if_else(mask, pa.scalar(None, column.type), column)


def _quoted(text: str, delimiter: str) -> str:
    """A field of a text table."""
    plain = not any(sign in text for sign in (delimiter, '"', "\n", "\r"))
    return text if plain else '"' + text.replace('"', '""') + '"'


class TextSink:
    """A text file in the form of its source."""

    def __init__(self, path: Path, target: Path, source: Any, layout: Layout):
        if target.name.lower().endswith((".parquet", ".pq")):
            raise InvalidParameter(
                f"{source.path} is a text file, and so is what is released: name it .csv, not "
                f"{target.name}"
            )
        self._delimiter, self._layout = source.delimiter, layout
        self._file = TextFile(path, target.name, source.delimiter, source.ending)
        self.close = self._file.close
        if source.header:
            self._file.write_names([source.columns[k] for k in layout.kept] + layout.names)

    def write(self, rows: Any, added: Added) -> None:
        """Rows of a batch, with what was added."""
        old = [c.fill_null("") for c in self._layout.old(rows, added.status)]
        self._file.write(old, self._layout.tails(added, self._delimiter))


class ParquetSink:
    """A Parquet file: columns with their types, and how they were released in the metadata."""

    def __init__(
        self, path: Path, target: Path, source: Any, layout: Layout, facts: dict[str, Any]
    ):
        if re.search(r"\.(csv|tsv|txt|gz|geojson|gpkg|fgb)$", target.name.lower()):
            what = (
                "is Parquet, and so is what is released"
                if source.kind == "parquet"
                else ("is released as Parquet")
            )
            raise InvalidParameter(f"{source.path} {what}: name it .parquet, not {target.name}")
        self._layout = layout
        self._schema = released_schema(source.schema, layout, facts)
        self._writer = parquet.ParquetWriter(path, self._schema)
        self.close = self._writer.close

    def write(self, rows: Any, added: Added) -> None:
        """Rows of a batch, with what was added."""
        columns = [*self._layout.old(rows, added.status), *self._layout.added(added)]
        self._writer.write_table(pa.Table.from_arrays(columns, schema=self._schema))


@contextmanager
def writing(
    written: Path, target: Path, source: FileSource, layout: Layout, facts: dict[str, Any]
) -> Iterator[TextSink | ParquetSink]:
    """An output for a file; it is at ``written`` when it is whole, and will be at ``target``."""
    with replacing(written, SECRET) as part:
        sink = (
            TextSink(part, target, source, layout)
            if source.kind == "text"
            else ParquetSink(part, target, source, layout, facts)
        )
        with closing(sink):
            yield sink


def released_schema(schema: Any, layout: Layout, facts: dict[str, Any]) -> Any:
    """Of a table with its new columns; what libraries noted about the old ones goes, for it may
    tell of columns that were left out (GeoParquet: the box of the true places)."""
    noted = dict(schema.metadata or {})
    kept = [schema.field(k) for k in layout.kept]
    if not layout.all:
        noted = _kept_geometry(noted.get(b"geo"), {field.name for field in kept})
    metadata = {**noted, b"pglp_fast": json.dumps(facts).encode()}
    if layout.points:
        metadata[b"geo"] = _geo_metadata(noted.get(b"geo"), layout.names[-1])
    return pa.schema(kept + layout.fields(), metadata=metadata)


def _geo_metadata(noted: bytes | None, name: str) -> bytes:
    """What GeoParquet says of the column of released points; ``noted``: of the others."""
    columns = _geo_columns(noted) | {name: {"encoding": "WKB", "geometry_types": ["Point"]}}
    return json.dumps({"version": "1.0.0", "primary_column": name, "columns": columns}).encode()


def _kept_geometry(noted: bytes | None, names: set[str]) -> dict[bytes, bytes]:
    """What GeoParquet says of the columns that stay: how they are written, not where they lie."""
    form = ("encoding", "geometry_types", "crs", "edges", "orientation", "epoch")
    columns = {
        name: {key: about[key] for key in form if key in about}
        for name, about in _geo_columns(noted).items()
        if name in names and isinstance(about, dict)
    }
    if not columns:
        return {}
    said = {"version": "1.0.0", "primary_column": next(iter(columns)), "columns": columns}
    return {b"geo": json.dumps(said).encode()}


def _geo_columns(noted: bytes | None) -> dict[str, Any]:
    """The columns that the metadata of GeoParquet tells of."""
    try:
        return dict(json.loads(noted or b"{}").get("columns", {}))
    except (ValueError, AttributeError, TypeError):
        return {}

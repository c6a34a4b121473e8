"""Rows as they stand in a file, and the fixes read from them, side by side."""

import csv
import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings, strategies as st

import pglp_fast as pf
from pglp_fast.errors import InvalidParameter, InvalidTable
from pglp_fast.io.columns import place_columns
from pglp_fast.io.fix_batches import Reading, to_tracks
from pglp_fast.io.table_batches import open_batches

TEXT = """note,user,time,lat,lon,Latitude
"a, ""b\""",ann,2020-01-01T00:00:00Z,1,2,9

,bob,soon,3,4,
too,few
"open,bob,2020-01-01T00:00:00Z,5,6,
 x ,cid,2020-01-01T00:00:01Z,7, 8 ,
"""


def test_raw_rows_and_fixes_are_aligned(tmp_path):
    """Catches: a row that Arrow drops, text that is changed or becomes null, lines off by the
    blank ones, fixes of other rows."""
    path = tmp_path / "a.csv"
    path.write_text(TEXT)
    for rows in (1, 2, 100):
        with open_batches(path, columns={"lat": "lat"}, rows=rows) as table:
            assert (table.kind, table.delimiter, table.name) == ("text", ",", "a.csv")
            assert table.columns == ["note", "user", "time", "lat", "lon", "Latitude"]
            assert table.at == {"user": 1, "time": 2, "lat": 3, "lon": 4}
            assert place_columns(table.columns) == [3, 4, 5]
            reading = Reading("skip", "UTC")
            raws = list(table)
            read = [table.parse(raw, reading) for raw in raws]
            tracks = [to_tracks(batch, reading) for batch in read]
        assert all(len(raw.rows) <= rows for raw in raws)
        assert [raw.rows.schema for raw in raws] == [table.schema] * len(raws)
        got = [tuple(row.values()) for raw in raws for row in raw.rows.to_pylist()]
        assert got == [
            ('a, "b"', "ann", "2020-01-01T00:00:00Z", "1", "2", "9"),
            ("", "bob", "soon", "3", "4", ""),
            ("too,few", "", "", "", "", ""),
            ('"open,bob,2020-01-01T00:00:00Z,5,6,', "", "", "", "", ""),
            (" x ", "cid", "2020-01-01T00:00:01Z", "7", " 8 ", ""),
        ]
        assert np.concatenate([raw.numbers for raw in raws]).tolist() == [2, 4, 5, 6, 7]
        assert [raw.first for raw in raws] == list(range(0, 5, rows))
        broken = {raw.first + row: why for raw in raws for row, why in raw.broken.items()}
        assert broken == {2: "2 fields where 6 are due", 3: "a quote is not closed on its line"}
        at = np.concatenate([raw.first + batch.at for raw, batch in zip(raws, read, strict=True)])
        assert at.tolist() == [0, 4]
        assert np.concatenate([some.number for some in tracks]).tolist() == [2, 7]
        assert np.concatenate([some.lat for some in tracks]).tolist() == [1.0, 7.0]
        named = [str(m) for some in tracks for m in some.report.malformed]
        assert named == [
            "a.csv, line 4: time 'soon' is not a time: write the column as 2024-12-25 10:00, or as "
            "seconds since 1970",
            "a.csv, line 5: 2 fields where 6 are due",
            "a.csv, line 6: a quote is not closed on its line",
        ]
        assert tracks[-1].users.tolist() == ["ann", "cid"]


def test_parquet_keeps_types_and_other_columns(tmp_path):
    rows = {"user": [1, None, 3], "time": [0, 1, 2], "lat": [1.0, 2.0, None], "lon": [4, 5, 6]}
    written = pa.table(rows | {"rest": [[1], [], None]}).replace_schema_metadata({"a": "b"})
    pyarrow.parquet.write_table(written, tmp_path / "a.parquet")
    reading = Reading("skip", "UTC")
    with open_batches(tmp_path / "a.parquet", rows=2) as table:
        assert (table.kind, table.delimiter) == ("parquet", "")
        assert place_columns(table.columns) == [2, 3]
        assert table.schema.metadata[b"a"] == b"b"
        raws = list(table)
        read = [table.parse(raw, reading) for raw in raws]
        tracks = [to_tracks(batch, reading) for batch in read]
    assert pa.Table.from_batches([raw.rows for raw in raws]).equals(written)
    assert [raw.first for raw in raws] == [0, 2]
    assert [raw.numbers for raw in raws] == [None, None]
    assert [batch.at.tolist() for batch in read] == [[0], [0]]
    assert [some.number.tolist() for some in tracks] == [[0], [2]]
    with pytest.raises(InvalidParameter, match="names is for text files"):
        open_batches(tmp_path / "a.parquet", names=["user"])
    with pytest.raises(InvalidTable, match="cannot be read"):
        open_batches(tmp_path / "b.parquet")


FIELD = st.text(st.sampled_from(["a", '"', ",", " ", "7", "é"]), max_size=4)


@settings(max_examples=200)
@given(st.lists(st.lists(FIELD, min_size=4, max_size=4), min_size=1, max_size=8), st.booleans())
def test_fields_as_python_reads_them(tmp_path_factory, rows, quote_all):
    """What csv writes comes back, field by field."""
    out = io.StringIO()
    style = csv.QUOTE_ALL if quote_all else csv.QUOTE_MINIMAL
    csv.writer(out, quoting=style).writerows([["user", "time", "lat", "lon"], *rows])
    path = tmp_path_factory.mktemp("fields") / "a.csv"
    path.write_bytes(out.getvalue().encode())
    with open_batches(path) as table:
        (raw,) = table
    assert [list(row.values()) for row in raw.rows.to_pylist()] == rows
    assert raw.broken == {}


@settings(max_examples=300)
@given(st.lists(st.text(st.sampled_from('a",1'), min_size=1, max_size=9), min_size=1, max_size=6))
def test_a_broken_line_spoils_no_other(tmp_path_factory, lines):
    """Any mixture of quotes and delimiters: each line is one row, whatever its neighbours are, and
    those in order are read as Python reads them."""
    path = tmp_path_factory.mktemp("lines") / "a.csv"
    path.write_text("\n".join(["user,time,lat,lon", *lines]))
    with open_batches(path) as table:
        (raw,) = table
    assert raw.numbers.tolist() == [k + 2 for k in range(len(lines))]
    for row, (text, found) in enumerate(zip(lines, raw.rows.to_pylist(), strict=True)):
        if row in raw.broken:
            assert list(found.values()) == [text, "", "", ""]
        try:
            fields = next(csv.reader([text], strict=True))
        except csv.Error:
            assert "quote" in raw.broken[row]
            continue
        if len(fields) != 4:
            assert raw.broken[row] == f"{len(fields)} fields where 4 are due"
        else:
            assert list(found.values()) == fields
            assert row not in raw.broken


def test_latin_1_lines_among_others(tmp_path):
    """Lines that are not UTF-8 are Latin-1; the others are what they are."""
    path = tmp_path / "a.csv"
    lines = ["user,time,lat,lon", "é,0,1,2", "東,0,1,2"]
    path.write_bytes("\n".join(lines).encode() + "\nü,0,1,2\n".encode("latin-1"))
    assert pf.read_table(path).users.tolist() == ["é", "東", "ü"]


@given(st.lists(st.sampled_from(["", "a,0,1,2", "x"]), max_size=9), st.sampled_from(["\n", "\r\n"]))
def test_lines_are_counted_over_blank_ones(tmp_path_factory, lines, end):
    """Wherever blank lines stand, and however lines end."""
    path = tmp_path_factory.mktemp("blank") / "a.csv"
    path.write_bytes(end.join(["user,time,lat,lon", *lines]).encode())
    with open_batches(path) as table:
        numbers = [number for raw in table for number in raw.numbers.tolist()]
    assert numbers == [k + 2 for k, line in enumerate(lines) if line]

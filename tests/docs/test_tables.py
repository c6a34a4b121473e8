"""The tables of the docs that are measured: each has a place, and each place has one."""

import re

from benchmarks import tables


def test_every_table_has_a_place_and_every_place_a_table():
    assert tables.main(["--check"]) == 0


def test_a_table_goes_where_it_belongs(tmp_path, monkeypatch):
    """Between its own marks, and nowhere else; all other text stays."""
    (tmp_path / "docs").mkdir()
    page = tmp_path / "README.md"
    page.write_text(
        "a\n<!-- measured: one -->\nold\n<!-- end -->\nb\n<!-- measured: two -->\n<!-- end -->\n"
    )
    monkeypatch.setattr(tables, "ROOT", tmp_path)
    monkeypatch.setattr(tables, "TABLES", {"one": lambda: "| new |\n", "two": None})
    tables.write(["one"])
    text = re.sub(r"Python .*\n", "machine\n", page.read_text())
    assert text == (
        "a\n<!-- measured: one -->\n| new |\n\nmachine\n<!-- end -->\nb\n"
        "<!-- measured: two -->\n<!-- end -->\n"
    )


def test_seconds_read_well():
    assert [tables._time(x) for x in (2.0, 0.25, 0.0031, 4.2e-5, 3e-9)] == [
        "2 s",
        "250 ms",
        "3.1 ms",
        "42 us",
        "3 ns",
    ]

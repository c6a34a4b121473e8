"""``pglp-fast report``: from a released table to one HTML file."""

import json
import re
from pathlib import Path

import pytest

from cases import large
from pglp_fast.cli import main

pytestmark = large
BOX = ["--bounds", "35.68,35.82,139.60,139.77", "--cell-km", "0.34"]
PROMISE = ["--epsilon", "1", "--policy", "blocks:3"]
KEEP = ["--seed", "3", "--keep", "all"]


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Trips released against a model, and one by one."""
    folder = tmp_path_factory.mktemp("tables")
    history, trips, model, private, alone = (
        str(folder / n) for n in ("h.csv", "t.csv", "m.npz", "private.csv", "alone.csv")
    )
    assert main(["simulate", "-o", history, "--users", "60", "--seed", "1"]) == 0
    assert main(["simulate", "-o", trips, "--users", "8", "--seed", "2"]) == 0
    assert main(["fit", history, "-o", model, "--cell-km", "0.34"]) == 0
    assert main(["release", trips, "-o", private, *PROMISE, "--mobility", model, *KEEP]) == 0
    assert main(["release", trips, "-o", alone, *PROMISE, *BOX, *KEEP]) == 0
    return {"model": model, "private": private, "alone": alone, "trips": trips}


def test_traces(tables, tmp_path, capsys):
    out = tmp_path / "r.html"
    how = [
        "report",
        tables["private"],
        "-o",
        str(out),
        *PROMISE,
        "--mobility",
        tables["model"],
        "--title",
        "A <b>day</b>",
        "--users",
        "3",
    ]
    assert main([*how, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["report"] == str(out)
    assert said["rows"] > 100
    assert said["truth"] is False
    text = out.read_text()
    assert "A &lt;b&gt;day&lt;/b&gt;" in text
    assert "<b>day</b>" not in text
    assert "Keep this file private" not in text
    assert main(how) == 2
    assert "--force overwrites it" in capsys.readouterr().err
    assert main([*how, "--force", "--with-truth"]) == 0
    assert "Keep this file private" in out.read_text()
    assert out.stat().st_mode & 0o077 == 0


def test_one_by_one(tables, tmp_path, capsys):
    shared, private = tmp_path / "shared.html", tmp_path / "private.html"
    how = ["report", tables["alone"], *PROMISE, *BOX]
    assert main([*how, "-o", str(shared)]) == 0
    assert "releases" in capsys.readouterr().out
    assert "Keep this file private" not in shared.read_text()
    assert main([*how, "-o", str(private), "--with-truth"]) == 0
    assert "Keep this file private" in private.read_text()


def test_people_read_moments_with_their_clock_and_count_from_one(tables, tmp_path):
    """Steps were counted from 0, and clock times had no zone; rows had no times at all."""
    for kind, more in (("private", ["--mobility", tables["model"]]), ("alone", BOX)):
        out = tmp_path / f"{kind}.html"
        assert main(["report", tables[kind], "-o", str(out), *PROMISE, *more]) == 0
        text = out.read_text()
        data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.S)[1])
        assert data["words"]["first"] == 1
        names = data["users"][0]["times"] if kind == "private" else data["steps"]
        assert all(re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$", name) for name in names)


def test_the_title_of_a_trace_is_whole(tables, tmp_path, monkeypatch):
    """It ran off the picture's edge, and the zone with it."""
    from matplotlib.figure import Figure

    drawn, save = [], Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda f, *a, **k: (drawn.append(f), save(f, *a, **k)))
    out = str(tmp_path / "t.png")
    assert main(["plot", "trace", tables["private"], "-o", out, "--mobility", tables["model"]]) == 0
    [figure] = drawn
    figure.canvas.draw()
    box = figure.axes[0].title.get_window_extent()
    assert box.x0 >= 0 and box.x1 <= figure.bbox.width and "UTC" in figure.axes[0].get_title()
    ends = {text.get_text() for text in figure.axes[0].texts}
    assert not any(text.startswith("t = 0") for text in ends)


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        (
            "alone",
            ["--mobility", "MODEL"],
            "was released one by one (no column released_exposed): release it with --mobility",
        ),
        (
            "trips",
            BOX,
            "no column 'released_lat' for the lat among 'user', 'time', 'lat', 'lon', 'place'",
        ),
        ("alone", [*BOX, "--delta", "0.1"], "--delta is for users who move"),
        ("alone", [], "which map?"),
    ],
)
def test_errors(tables, tmp_path, capsys, table, options, message):
    out = tmp_path / "r.html"
    options = [tables["model"] if o == "MODEL" else o for o in options]
    assert main(["report", tables[table], "-o", str(out), *PROMISE, *options]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["parquet", "text"])
def test_options_that_the_table_contradicts(tables, tmp_path, capsys, kind):
    """A report of options that a table was not released with would prove what never was. Parquet
    and sidecars say how a table was released; without one, cells must agree with the map, and the
    rest is said to be taken on trust, on the page too."""
    pytest.importorskip("pyarrow")
    import pyarrow.csv as pc
    import pyarrow.parquet as pq

    trips, out = (str(tmp_path / n) for n in ("t.parquet", "r.html"))
    private = str(tmp_path / "p.parquet") if kind == "parquet" else tables["private"]
    pq.write_table(pc.read_csv(tables["trips"]), trips)
    model = ["--mobility", tables["model"]]
    if kind == "parquet":
        assert main(["release", trips, "-o", private, *PROMISE, *model]) == 0
    for command in (
        ["report", private, "-o", out],
        ["attack", private],
        ["certify", "--table", private],
    ):
        for wrong, message in (
            (
                ["--epsilon", "0.1", "--policy", "blocks:3"],
                "was released with --epsilon 1.0, not 0.1",
            ),
            (
                ["--epsilon", "1", "--policy", "neighbours8"],
                "was released with --policy blocks:3, not neighbours8",
            ),
            ([*PROMISE, "--mechanism", "plm"], "was released with --mechanism ppim, not plm"),
        ):
            assert main([*command, *wrong, *model]) == 2
            assert message in capsys.readouterr().err
    assert main(["attack", private, *PROMISE, *model, "--delta", "0.1"]) == 2
    assert "was released with --delta 0.0, not 0.1" in capsys.readouterr().err
    assert main(["report", private, "-o", out, *PROMISE, *model]) == 0
    assert "does not say how" not in capsys.readouterr().err
    assert "Nothing was checked" not in (tmp_path / "r.html").read_text()
    other = ["--bounds", "35.68,35.82,139.60,139.77", "--cell-km", "0.5"]
    assert main(["report", tables["alone"], "-o", str(tmp_path / "q.html"), *PROMISE, *other]) == 2
    assert "give the map that it was released on" in capsys.readouterr().err
    bare = tmp_path / "bare.csv"
    bare.write_bytes(Path(tables["alone"]).read_bytes())
    assert main(["report", str(bare), "-o", str(tmp_path / "q.html"), *PROMISE, *BOX]) == 0
    assert "does not say how it was released" in capsys.readouterr().err
    assert "Nothing was checked: the table does not say" in (tmp_path / "q.html").read_text()


def test_a_report_is_named_html(tables, tmp_path, capsys):
    assert main(["report", tables["alone"], "-o", str(tmp_path / "r.pdf"), *PROMISE, *BOX]) == 2
    assert "name the report .html" in capsys.readouterr().err


def test_no_truth_to_put_in(tables, tmp_path, capsys):
    dropped, out = str(tmp_path / "d.csv"), str(tmp_path / "r.html")
    assert main(["release", tables["trips"], "-o", dropped, *PROMISE, *BOX]) == 0
    assert main(["report", dropped, "-o", out, *PROMISE, *BOX, "--with-truth"]) == 2
    assert "has no true places, for --with-truth" in capsys.readouterr().err
    assert main(["report", dropped, "-o", out, *PROMISE, *BOX]) == 0


def test_a_seeded_table_is_said_to_be_seeded(tables, tmp_path, capsys):
    """The table says so of itself; the page said "proved", and nothing of the seed."""
    moving = ["--mobility", tables["model"]]
    for kind, more in (("private", moving), ("alone", BOX)):
        out = tmp_path / f"{kind}.html"
        assert main(["report", tables[kind], "-o", str(out), *PROMISE, *more]) == 0
        assert "was released with a seed" in capsys.readouterr().err
        assert "Seeded release." in out.read_text()
    assert main(["attack", tables["private"], *PROMISE, *moving]) == 0
    assert "was released with a seed" in capsys.readouterr().err
    fresh = str(tmp_path / "fresh.csv")
    assert main(["release", tables["trips"], "-o", fresh, *PROMISE, *BOX]) == 0
    capsys.readouterr()
    assert main(["report", fresh, "-o", str(tmp_path / "f.html"), *PROMISE, *BOX]) == 0
    assert "seed" not in capsys.readouterr().err
    assert "Seeded release." not in (tmp_path / "f.html").read_text()


def test_a_report_on_some_persons_says_of_how_many(tables, tmp_path):
    """It said "proved, all releases" of three of eight persons: in the lead and the notes."""
    out, told = tmp_path / "r.html", "3 of 8 persons, evenly picked; nothing here is about the"
    how = ["report", tables["private"], "-o", str(out), *PROMISE, "--mobility", tables["model"]]
    assert main([*how, "--traces", "3"]) == 0
    text = out.read_text()
    assert text.count(f"A sample: {told} others") == 2
    assert text.index(told) < text.index("3 users, ") and text.index("<footer") < text.rindex(told)
    assert main([*how, "--force"]) == 0
    assert "evenly picked" not in out.read_text()

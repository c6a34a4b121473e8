"""Maps to move and zoom in: what is in the file, and what a browser makes of it."""

import base64
import html as markup
import json
import re

import numpy as np
import pytest

import pglp_fast as pf
from browser import Browser, find_chromium
from cli_tools import MAP, answer, read, run, the_grid, trips


def data_of(text):
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.S)[1])


def array(layer, key, kind):
    return np.frombuffer(base64.b64decode(layer[key]), kind)


def a_map(**more):
    g = the_grid()
    return g, pf.plot.interactive_map(
        g,
        values={"people": np.arange(g.size) % 7, "x": np.ones(g.size)},
        policy=pf.blocks(g, 3),
        points={"</script><b>released": [5, 5, 9]},
        traces={"true": [0, 1, -1, 30]},
        title="A & <B>",
        **more,
    )


def test_the_file_holds_what_was_given_and_fetches_nothing():
    g, made = a_map()
    data = data_of(made.html)
    values, _, policy, dots, line = data["layers"]
    assert np.array_equal(array(values, "values", "<f4"), np.arange(g.size) % 7)
    assert (values["low"], values["high"], values["zero"]) == (0, 6, "blank")
    assert np.array_equal(array(policy, "labels", "<i4"), pf.blocks(g, 3).components)
    assert array(dots, "cells", "<i4").tolist() == [5, 5, 9]
    assert array(line, "cells", "<i4").tolist() == [0, 1, -1, 30]
    south, west = g.latlon(0) - [data["grid"]["dlat"] / 2, data["grid"]["dlon"] / 2]
    assert np.allclose([data["grid"]["lat0"], data["grid"]["lon0"]], [south, west])
    assert data["tiles"] is None and "img-src" not in made.html
    assert not re.search(r"(src|href)=|https?://", made.html)
    assert made.html.count("</script>") == 2 and "A &amp; &lt;B&gt;" in made.html
    shown = made._repr_html_()  # as a notebook has it
    assert made.html in markup.unescape(shown)


def test_tiles_are_asked_for_by_name():
    assert "img-src https://tile.openstreetmap.org" in a_map(tiles=True)[1].html
    own = "http://localhost:8080/{z}/{x}/{y}.png"
    assert "img-src http://localhost:8080" in a_map(tiles=own)[1].html


def test_points_lie_where_they_are():
    p = pf.Points.from_latlon([35.0, 35.1, 35.05], [139.0, 139.2, 139.1])
    data = data_of(pf.plot.interactive_map(p, policy=pf.complete(p)).html)
    x, y = (array(data, axis, "<f4") + data[f"{axis}0"] for axis in "xy")
    assert np.allclose(np.stack([y, x], axis=1), p.latlon([0, 1, 2]), atol=1e-6)
    assert array(data["layers"][0], "edges", "<i4").tolist() == [0, 1, 0, 2, 1, 2]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda g: pf.plot.interactive_map(g, values=[1, 2]), "one number for each"),
        (lambda g: pf.plot.interactive_map(g, points={"a": [g.size]}), "neither one of"),
        (lambda g: pf.plot.interactive_map(g, policy=pf.blocks(pf.Grid(3, 3), 3)), "different"),
        (lambda g: pf.plot.interactive_map(pf.Grid(3, 3), tiles=True), "no tiles"),
        (lambda g: pf.plot.interactive_map(g, tiles="https://x/{z}"), "tiles must be"),
        (lambda g: pf.plot.interactive_map(g, tiles="https://x; script-src *{z}{x}{y}"), "tiles"),
        (lambda g: pf.plot.interactive_map(g).save("map.png"), "name the map .html"),
        (lambda g: pf.plot.interactive_map(pf.Grid(1001, 1000)), "too many"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(pf.PGLPError, match=message):
        make(the_grid())


def test_a_file_is_replaced_only_if_told(tmp_path):
    made = a_map()[1]
    path = made.save(tmp_path / "m.html")
    with pytest.raises(pf.InvalidParameter, match="overwrite=True"):
        made.save(path)
    assert made.save(path, overwrite=True).read_text() == made.html


def test_from_the_shell(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    trips(tmp_path / "t.csv", 40, 3)
    said = answer(capsys, "plot", "map", "t.csv", "-o", "m.html", "--cell-km", "0.4")
    layer = data_of((tmp_path / "m.html").read_text())["layers"][0]
    assert array(layer, "values", "<f4").sum() == said["on_map"] == 40
    run("plot", "map", "t.csv", "-o", "m.png", "--cell-km", "0.4", "--tiles", code=2)
    assert "--tiles is for .html" in capsys.readouterr().err


def test_a_released_table_is_drawn_on_its_own_map(tmp_path, monkeypatch, capsys):
    """It was drawn on the box of its released places, whose cells lie across those of the map."""
    monkeypatch.chdir(tmp_path)
    trips(tmp_path / "t.csv", 40, 3)
    how = ["--epsilon", "1", "--policy", "blocks:3", *MAP, "--keep", "all"]
    run("release", "t.csv", "-o", "r.csv", *how)
    run("plot", "map", "r.csv", "-o", "m.html")
    data = data_of((tmp_path / "m.html").read_text())
    g, cells = the_grid(), [int(row["released_cell"]) for row in read(tmp_path / "r.csv")]
    counts = array(data["layers"][0], "values", "<f4")
    assert np.array_equal(counts, np.bincount(cells, minlength=g.size))
    run("plot", "trace", "r.csv", "-o", "t.html")
    assert data_of((tmp_path / "t.html").read_text())["grid"] == data["grid"]


def test_traces_that_meet_hide_none_of_them():
    """The dots of true places covered those of releases."""
    g = the_grid()
    three = {name: [0, 1, 2] for name in ("released", "guess", "true")}
    radii = [
        layer["radius"]
        for layer in data_of(pf.plot.interactive_map(g, traces=three).html)["layers"]
    ]
    assert radii == [8.5, 6.0, 3.5]


@pytest.mark.skipif(find_chromium() is None, reason="no Chromium to be had")
def test_rings_of_releases_are_drawn_around_true_places(tmp_path):
    g = the_grid()
    made = pf.plot.interactive_map(g, traces={"released": [40], "true": [40]})
    page = Browser(tmp_path / "profile", find_chromium(), 900, 700)
    try:
        page.resize(900, 700)
        page.open(made.save(tmp_path / "m.html"))
        inks = page.ask(
            "(() => { const c = document.querySelector('canvas'), k = c.getContext('2d');"
            " const seen = {};"
            " const d = k.getImageData(0, 0, c.width, c.height).data;"
            " for (let i = 0; i < d.length; i += 4) { const n = [d[i], d[i + 1], d[i + 2]].join();"
            " seen[n] = (seen[n] || 0) + 1; } return seen; })()"
        )
        styles = page.ask(
            "[0, 1].map(k => { const p = document.createElement('i'); p.style.color ="
            " getComputedStyle(document.documentElement).getPropertyValue('--dots' + k);"
            " document.body.append(p); return getComputedStyle(p).color; })"
        )
        for ink in styles:
            assert inks.get(",".join(re.findall(r"\d+", ink)), 0) > 10, (ink, sorted(inks.items()))
        page.resize(390, 844)  # what the colours mean is told on a phone too
        page.open(tmp_path / "m.html")
        assert page.ask("document.getElementById('panel').open")
    finally:
        page.close()


@pytest.mark.skipif(find_chromium() is None, reason="no Chromium to be had")
def test_in_a_browser(tmp_path):
    """Nothing is complained about or fetched; the cell under the pointer is the one that is there;
    zooming keeps it there. Would catch a map that is mirrored or shifted by a cell."""
    g, made = a_map()
    path = made.save(tmp_path / "m.html")
    page = Browser(tmp_path / "profile", find_chromium(), 900, 700)
    try:
        page.resize(900, 700)
        page.open(path)

        def at(x, y):
            page.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
            return page.ask("document.getElementById('tip').textContent")

        scale, lon, lat = (page.ask(f"+document.getElementById('map').dataset.{k}") for k in
                           ("scale", "x", "y"))  # fmt: skip
        cell = int(g.locate(lat - 0.004, lon + 0.006))
        x = 450 + 0.006 / 360 * scale
        y = 350 + np.radians(0.004) / np.cos(np.radians(lat)) / (2 * np.pi) * scale
        said = at(x, y)
        assert said.startswith(f"cell {cell}: ") and f"people: {cell % 7}" in said
        page.call("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=-400)
        page.ask("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        assert page.ask("+document.getElementById('map').dataset.scale") == pytest.approx(2 * scale)
        assert at(x + 1, y).startswith(f"cell {cell}: ")
        assert page.ask("document.querySelectorAll('#layers label').length") == 5
        assert not page.ask("document.querySelectorAll('#layers b').length")
        page.resize(390, 760, dark=True, touch=True)
        page.open(path)
        assert page.ask("document.documentElement.scrollWidth") == 390
        assert not page.problems
    finally:
        page.close()

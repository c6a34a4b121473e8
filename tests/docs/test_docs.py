"""Every Python example in the README and the docs runs as it stands, page by page."""

import ast
import importlib.util
import json
import re

import pytest

from cases import ROOT, large

pytestmark = large

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])


def examples(page):
    """Blocks of Python, but for those that say they need data which is not ours to ship, or a
    package that is not here."""
    text = page.read_text(encoding="utf-8")
    skipped = ["not run: .*?"]
    for package in set(re.findall(r"^<!-- needs (\w+) -->$", text, re.M)):
        if importlib.util.find_spec(package) is None:
            skipped.append(f"needs {package}")
    for what in skipped:
        text = re.sub(rf"^<!-- {what} -->\n```python\n.*?^```", "", text, flags=re.M | re.S)
    return re.findall(r"^```python\n(.*?)^```", text, flags=re.M | re.S)


@pytest.mark.parametrize("page", [p for p in PAGES if examples(p)], ids=lambda p: p.stem)
def test_examples_run(page, tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib import pyplot

    monkeypatch.chdir(tmp_path)
    names = {}
    for n, code in enumerate(examples(page)):
        exec(compile(code, f"{page.name}, example {n + 1}", "exec"), names)
    pyplot.close("all")


def test_links_lead_somewhere():
    """Relative links and pictures of the README and the docs exist."""
    for page in PAGES + list((ROOT / "docs" / "api").glob("*.md")):
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_gallery_is_short_and_each_example_draws_its_picture():
    """Would catch an example that outgrows a page, and a picture that nothing draws."""
    page = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    shown = 0
    for part in page.split("\n## ")[1:]:
        blocks = re.findall(r"^```python\n(.*?)^```", part, re.M | re.S)
        assert all(block.count("\n") < 30 for block in blocks), part[:40]
        (picture,) = re.findall(r"!\[.*?\]\(images/gallery/(\w+)\.png\)", part)
        assert (ROOT / "docs" / "images" / "gallery" / f"{picture}.png").stat().st_size < 100_000
        assert picture == "notebook" or f'savefig("{picture}.png"' in blocks[0]
        shown += 1
    assert shown == 10


def test_the_notebook_runs_and_shows_a_map(tmp_path, monkeypatch, capsys):
    """As Jupyter would: the last expression of the last cell is what is shown."""
    monkeypatch.chdir(tmp_path)
    notebook = json.loads((ROOT / "docs" / "gallery.ipynb").read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4
    cells = ["".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "code"]
    names = {}
    for code in cells[:-1]:
        exec(code, names)
    *before, last = ast.parse(cells[-1]).body
    exec(compile(ast.Module(before, []), "notebook", "exec"), names)
    made = eval(compile(ast.Expression(last.value), "notebook", "eval"), names)
    assert made._repr_html_().startswith("<iframe")

"""Every Python example in the README and the docs runs as it stands, page by page."""

import re

import pytest

from cases import ROOT, large

pytestmark = large

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])


def examples(page):
    """Blocks of Python, but for those that say they need data which is not ours to ship."""
    text = re.sub(
        r"^<!-- not run: .*? -->\n```python\n.*?^```",
        "",
        page.read_text(encoding="utf-8"),
        flags=re.M | re.S,
    )
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

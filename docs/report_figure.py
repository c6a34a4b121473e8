"""Draws docs/images/report.png: a report on a made-up city, as Chromium shows it."""

import sys
import tempfile
from pathlib import Path

import pglp_fast as pf
from pglp_fast.space.synthetic import synthetic_city

HERE = Path(__file__).parent
STEP = 11
sys.path.insert(0, str(HERE.parent / "tests"))

from browser import Browser, find_chromium  # noqa: E402

city = synthetic_city(40, 40)
model = pf.MobilityModel.fit(city.grid, city.walks(3000, 60, seed=5))
truth = city.walks(60, 36, seed=9)
releaser = pf.TraceReleaser(pf.blocks(city.grid, 3), model, epsilon=1.0, rng=3)
result = releaser.run(truth, evidence=True)
with tempfile.TemporaryDirectory() as folder:
    path = pf.write_report(
        Path(folder) / "report.html",
        releaser,
        result,
        truth,
        title="An afternoon in a made-up city",
        users=range(12),
    )
    chromium = find_chromium()
    assert chromium, "this needs Chromium"
    browser = Browser(Path(folder) / "profile", chromium)
    browser.resize(1180, 1230)
    browser.call("Emulation.setScrollbarsHidden", hidden=True)
    browser.open(path)
    browser.ask("document.querySelector('#stage').focus({preventScroll: true})")
    browser.press("ArrowDown")
    for _ in range(STEP):
        browser.press("ArrowRight")
    browser.ask("document.activeElement.blur(), window.scrollTo({top: 0, behavior: 'instant'})")
    browser.screenshot(HERE / "images" / "report.png")
    browser.close()

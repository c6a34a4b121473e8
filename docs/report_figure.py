"""Draws docs/images/report.png: a report on a made-up city, as Chromium shows it."""

import sys
import tempfile
from pathlib import Path

import numpy as np

import pglp_fast as pf
from pglp_fast.synthetic import City, synthetic_city

HERE = Path(__file__).parent
STEP = 11
sys.path.insert(0, str(HERE.parent / "tests"))

from browser import Browser, find_chromium  # noqa: E402


def strolls(city: City, users: int, steps: int, seed: int) -> np.ndarray:
    """People who keep their direction for a while."""
    grid, rng = city.grid, np.random.default_rng(seed)
    cells, heading = [city.people(users, seed)], rng.integers(-1, 2, (users, 2))
    for _ in range(steps - 1):
        turn = rng.random(users) < 0.25
        heading[turn] = rng.integers(-1, 2, (int(turn.sum()), 2))
        row = np.clip(cells[-1] // grid.cols + heading[:, 0], 0, grid.rows - 1)
        col = np.clip(cells[-1] % grid.cols + heading[:, 1], 0, grid.cols - 1)
        cells.append((row * grid.cols + col).astype(np.int32))
    return np.stack(cells, axis=1)


city = synthetic_city(40, 40)
model = pf.MobilityModel.fit(city.grid, strolls(city, 3000, 40, seed=5))
truth = strolls(city, 60, 36, seed=9)
releaser = pf.TraceReleaser(pf.blocks(city.grid, 3), model, epsilon=1.0, rng=3)
result = releaser.run(truth, evidence=True)
with tempfile.TemporaryDirectory() as folder:
    path = pf.write_report(
        Path(folder) / "report.html", releaser, result, truth, title="An afternoon in a made-up city", users=range(12)
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

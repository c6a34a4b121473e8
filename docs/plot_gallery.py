"""Draws the pictures of docs/plots.md, from the made-up city alone: ``python
docs/plot_gallery.py [folder]``."""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

import pglp_fast as pf
from pglp_fast.space.synthetic import CATEGORIES, City, synthetic_city

EPSILONS = (0.5, 1.0, 2.0, 3.0, 4.0)
SEED = 7  # for pictures that repeat; a release that protects people takes none


def walks(city: City, users: int, steps: int) -> np.ndarray:
    """People who stay or move to a cell nearby, and keep out of the river."""
    rng = np.random.default_rng(SEED)
    rows, cols = city.grid.rows, city.grid.cols
    out = np.empty((users, steps), np.int32)
    out[:, 0] = city.people(users, seed=SEED)
    for t in range(1, steps):
        row, col = np.divmod(out[:, t - 1], cols)
        up, right = rng.integers(-1, 2, (2, users))
        to = np.clip(row + up, 0, rows - 1) * cols + np.clip(col + right, 0, cols - 1)
        out[:, t] = np.where(city.density[to] > 0, to, out[:, t - 1])
    return out


def policies(city: City) -> plt.Figure:
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 5.2), layout="compressed")
    pf.plot.policy(
        pf.blocks(city.grid, 5),
        basemap=city.density * 1000,
        basemap_label="people per 1,000",
        ax=left,
    )
    left.set_title("G_k25: blocks of 5 x 5 cells", fontsize="medium")
    middle = np.arange(city.grid.size).reshape(60, 60)[18:42, 18:42].ravel()
    G = pf.categories(city.grid, city.categories, 6)
    pf.plot.policy(G, cells=middle, by=city.categories, names=CATEGORIES, ax=right)
    right.set_title("G_poi: same category in the same block", fontsize="medium")
    return figure


def noises(city: City) -> plt.Figure:
    figure, axes = plt.subplots(1, 3, figsize=(12, 4.6), layout="compressed")
    G, s = pf.blocks(city.grid, 3), 31 * 60 + 31
    for ax, m in zip(
        axes, (pf.PPIM(G, epsilon=2.0), pf.PLM(G, epsilon=2.0), pf.Optimal(G, epsilon=2.0))
    ):
        pf.plot.noise(m, s, ax=ax)
    return figure


def moving(city: City) -> tuple[plt.Figure, plt.Figure]:
    traces = walks(city, 400, 25)
    model = pf.MobilityModel.fit(city.grid, traces[1:], smoothing="neighbours8")
    stream = pf.TraceReleaser(pf.blocks(city.grid, 3), model, epsilon=1.0, rng=SEED).start(1)
    released, surrogate, domains, repaired = [], [], {}, {}
    for t, cell in enumerate(traces[0]):
        step = stream.step([cell])
        released.append(step.released[0])
        surrogate.append(bool(step.surrogate[0]))
        if t in (2, 8, 15, 24):
            domains[t], repaired[t] = stream.domain(0), stream.policy(0)
    axes = pf.plot.trace(
        city.grid, traces[0], released, surrogate=surrogate, domains=domains, policies=repaired
    )

    stream = pf.TraceReleaser(
        pf.blocks(city.grid, 3), model, epsilon=0.7, calibration="graph", rng=SEED
    ).start(1)
    last = [stream.step([cell]) for cell in traces[0, :6]][-1].released[0]
    p = stream.posterior(0)
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.8), layout="compressed")
    pf.plot.posterior(city.grid, p, true=traces[0, 5], released=last, ax=left)
    pf.plot.posterior(
        city.grid, p, true=traces[0, 5], released=last, log=True, share=None, ax=right
    )
    return axes[0].figure, figure


def measured(city: City, m: pf.Mechanism, people: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How far off the release is for each of the people, and the best guess of an adversary who
    knows where people tend to be."""
    released = m.release(people, rng=SEED)
    guess = pf.Remapped(m, city.density).to[
        released
    ]  # the location of least expected distance given the release
    return city.grid.distance(people, released), city.grid.distance(people, guess)


def tradeoff(city: City) -> plt.Figure:
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.0), layout="constrained")
    makers = {"P-LM": pf.PLM, "P-PIM": pf.PPIM, "Optimal": pf.Optimal, "KRR": pf.KRR}
    G, people = pf.blocks(city.grid, 3), city.people(2000, seed=SEED)
    both = {
        name: [measured(city, make(G, epsilon=eps), people) for eps in EPSILONS]
        for name, make in makers.items()
    }
    utility = {name: np.array([u for u, _ in rows]).T for name, rows in both.items()}
    privacy = {name: np.array([p for _, p in rows]).T for name, rows in both.items()}
    pf.plot.error_curves(EPSILONS, utility, ax=left)
    pf.plot.privacy_utility(EPSILONS, utility, privacy, ax=right)
    return figure


def series(city: City) -> plt.Figure:
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
    traces = walks(city, 500, 40)
    model = pf.MobilityModel.fit(city.grid, traces[100:], unseen="neighbours8")
    errors = {}
    for name, k in (("G_k9", 3), ("G_k16", 4), ("G_k25", 5)):
        out = pf.TraceReleaser(pf.blocks(city.grid, k), model, epsilon=1.0, rng=SEED).run(
            traces[:100]
        )
        errors[name] = city.grid.distance(traces[:100].ravel(), out.released.ravel()).reshape(
            out.released.shape
        )
    pf.plot.over_time(errors, ax=left)
    people = city.people(3000, seed=SEED)
    bars = {}
    for name, make in (("P-LM", pf.PLM), ("P-PIM", pf.PPIM)):
        columns = [
            city.grid.distance(
                people, make(pf.blocks(city.grid, k), epsilon=1.0).release(people, rng=SEED)
            )
            for k in (3, 4, 5)
        ]
        bars[name] = np.array(columns).T
    pf.plot.bars(list(errors), bars, xlabel="policy", ax=right)
    return figure


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    city = synthetic_city()
    trace, posterior = moving(city)
    pictures = {
        "plot_policy": policies(city),
        "plot_noise": noises(city),
        "plot_trace": trace,
        "plot_posterior": posterior,
        "plot_tradeoff": tradeoff(city),
        "plot_series": series(city),
    }
    for name, figure in pictures.items():
        figure.savefig(folder / f"{name}.png", dpi=90)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "images")

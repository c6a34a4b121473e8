"""Draws the pictures of docs/mechanisms.md: error, and what the adversary is left with, against
epsilon for every mechanism.

python docs/mechanism_figures.py [POI_TK.csv]: the last panel is a real POI policy (Tokyo) where
that file is given, else made up."""

import sys
from pathlib import Path

import numpy as np

import pglp_fast as pf
from pglp_fast import plot
from pglp_fast.space.synthetic import synthetic_city

CELL_KM = 0.27
EPSILONS = np.geomspace(0.1, 10, 13)
MECHANISMS = {
    "P-LM": lambda G, e, p: pf.PLM(G, epsilon=e),
    "planar Laplace": lambda G, e, p: pf.PlanarLaplace(G, epsilon=e),
    "P-PIM": lambda G, e, p: pf.PPIM(G, epsilon=e),
    "graph exponential": lambda G, e, p: pf.GraphExponential(G, epsilon=e),
    "k-RR": lambda G, e, p: pf.KRR(G, epsilon=e),
    "P-PIM remapped": lambda G, e, p: pf.Remapped(pf.PPIM(G, epsilon=e), p),
    "Optimal": lambda G, e, p: pf.Optimal(G, epsilon=e, prior=p),
}
STYLES = {
    name: dict(color=plot.COLOURS[i], marker=plot.MARKERS[i]) for i, name in enumerate(MECHANISMS)
}


def poi_policy(path):
    """(name, policy, prior): the same category within 6 x 6 cells; every place of a category as
    likely as another."""
    if path is None:
        city = synthetic_city()
        grid, labels, name = city.grid, city.categories, "$G_{poi}$, made-up city"
    else:
        grid = pf.Grid.from_bounds(lat=(35.679, 35.80), lon=(139.60, 139.75), cell_km=CELL_KM)
        labels, name = pf.read_peopleflow_pois(path).cell_categories(grid), "$G_{poi}$, Tokyo"
    return name, pf.categories(grid, labels, 6), (labels >= 0).astype(float)


def panels(path):
    for k in (3, 4, 5):
        yield f"$G_{{k{k * k}}}$", pf.blocks(pf.Grid(k, k, cell_km=CELL_KM), k), None
    yield poi_policy(path)


def main(path=None, folder=Path(__file__).parent / "images"):
    plt = plot.pyplot()
    figures = [
        plt.subplots(1, 4, figsize=(15, 4.2), layout="constrained", sharex=True) for _ in range(2)
    ]
    for column, (title, graph, prior) in enumerate(panels(path)):
        told = None
        for name, make in MECHANISMS.items():
            found = [
                pf.compare({name: make(graph, float(e), prior)}, prior=prior).rows[name]
                for e in EPSILONS
            ]
            values = [u.e_eu for u, _ in found], [p.error for _, p in found]
            told = found[0][1].told_error
            for (_, axes), y in zip(figures, values):
                axes[column].plot(EPSILONS, y, label=name, ms=4.5, lw=1.4, **STYLES[name])
            print(
                f"{title:22}{name:18}" + "".join(f"{v:7.3f}" for v in values[0][::3]),
                *(f"{v:7.3f}" for v in values[1][::3]),
            )
        for (_, axes), label in zip(
            figures, ("mean error of the release (km)", "mean error of the adversary (km)")
        ):
            ax = axes[column]
            ax.axhline(told, color="0.4", lw=1, ls=":", label="the component alone is known")
            ax.set(xscale="log", title=title, xlabel="epsilon", ylim=(0, None))
            ax.grid(alpha=0.3)
            if column == 0:
                ax.set_ylabel(label)
    for (figure, axes), name in zip(figures, ("error", "adversary")):
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(
            handles, labels, loc="outside lower center", ncols=8, fontsize="small", frameon=False
        )
        figure.savefig(folder / f"mechanisms_{name}.png", dpi=100)
        plt.close(figure)


if __name__ == "__main__":
    main(*sys.argv[1:2])

"""Draws docs/images/theorems.png: the largest ln ratio of every pair against its distance."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

import pglp_fast as pf

g = pf.Grid(6, 6, cell_km=0.5)
path = pf.PolicyGraph.from_edges(g, [(k, k + 1) for k in range(11) if k != 5])
cases = {
    "a path of 6 cells (k hops)": (path, 0),
    "G_1, each with the eight around": (pf.neighbours8(g), 0),
    "G_2, all of a set": (pf.complete(g, [0, 1, 2, 7, 8, 14, 21, 28, 35]), 0),
}
figure, axes = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
for ax, (name, (G, s)) in zip(axes, cases.items(), strict=True):
    for k, kind in enumerate((pf.PPIM, pf.PLM)):
        outputs, P = kind(G, epsilon=1.0).matrix(s)
        hops = np.array([[G.distance(a, b) for b in outputs] for a in outputs])
        ratio = np.array([[np.log(p / q).max() for q in P] for p in P])
        x, y = hops[hops > 0], ratio[hops > 0]
        ax.plot(x + 0.1 * (k - 0.5), y, ".", alpha=0.5, label=("P-PIM", "P-LM")[k])
    most = int(hops.max())
    d = np.arange(1, most + 1)
    ax.hlines(d, d - 0.35, d + 0.35, color="black", lw=1.5, label="the bound, epsilon d_G")
    ax.set_xticks(d)
    ax.set_xlabel("hops d_G(s, s')")
    ax.set_ylabel("largest ln Pr(z|s) / Pr(z|s')")
    ax.set_title(name, fontsize="medium")
axes[0].legend(frameon=False, fontsize="small")
figure.savefig(Path(__file__).parent / "images" / "theorems.png", dpi=110)

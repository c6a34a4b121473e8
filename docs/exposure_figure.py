"""Draws docs/images/exposure.png."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt

import pglp_fast as pf

g = pf.Grid(9, 12, cell_km=0.5)
G = pf.blocks(g, 3)
C = pf.Domain(g, [13, 14, 25, 26, 29, 42, 65, 77, 78, 88, 59, 35, 104])
figure, axes = plt.subplots(1, 2, figsize=(13, 4.4), layout="constrained", sharey=True)
pf.plot.exposure(G, C, calibration="graph", at=29, ax=axes[0])
axes[0].set_title("graph calibration: a neighbour within K will do", fontsize="medium")
pf.plot.exposure(G, C, calibration="component", ax=axes[1])
for ax in axes:
    ax.get_legend().remove()
figure.legend(
    *axes[0].get_legend_handles_labels(), loc="outside right upper", fontsize="small", frameon=False
)
axes[1].set_title("component calibration: whoever stands alone is joined", fontsize="medium")
figure.savefig(Path(__file__).parent / "images" / "exposure.png", dpi=120)

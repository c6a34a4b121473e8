"""Prints the table of docs/exposure.md: mean noise after min-error repair against min-area
repair, on random domains."""

import itertools

import numpy as np

import pglp_fast as pf
from pglp_fast._kernels.geometry import hull_growth

GRID = pf.Grid(60, 60)


def mean_noise(graph, domain, calibration):
    """Mean over the domain of E|Y| (cells, eps = 1) of the noise that each location gets."""
    m = pf.PPIM(graph, epsilon=1.0, domain=domain, calibration=calibration, sampler="geometric")
    vertices, starts = m.groups.hulls
    hulls = [np.ascontiguousarray(vertices[a:b]) for a, b in itertools.pairwise(starts)]
    made = [hull_growth.with_prefixes(hull, *GRID.scale) for hull in hulls]
    errors = np.array(
        [hull_growth.error_of(body, area, moment, *GRID.scale) for body, _, area, moment in made]
    )
    return errors[m.groups.shape_of[m.groups.address[domain.cells(), 0]]].mean()


rng = np.random.default_rng(0)
print(
    "| policy | share of cells in C | calibration | domains | min-error wins | min-area wins | "
    "mean gain | best gain |"
)
print("|---|---|---|---|---|---|---|---|")
for name, policy in (
    ("G_k9", pf.blocks(GRID, 3)),
    ("G_k25", pf.blocks(GRID, 5)),
    ("neighbours8", pf.neighbours8(GRID)),
):
    for share in (0.02, 0.05, 0.1, 0.2):
        for calibration in ("component", "graph"):
            gains = []
            for _ in range(40):
                domain = pf.Domain.from_mask(GRID, rng.random(GRID.size) < share)
                both = [
                    pf.repair(policy, domain, strategy=s, calibration=calibration)
                    for s in ("min-area", "min-error")
                ]
                if len(both[0].added):
                    area, error = (mean_noise(r.graph, domain, calibration) for r in both)
                    gains.append(1 - error / area)
            if gains:
                won, lost = sum(v > 1e-9 for v in gains), sum(v < -1e-9 for v in gains)
                row = [
                    name,
                    f"{share:.0%}",
                    calibration,
                    len(gains),
                    won,
                    lost,
                    f"{np.mean(gains):.1%}",
                    f"{max(gains):.1%}",
                ]
                print("| " + " | ".join(map(str, row)) + " |")

"""What composition leaves on Geolife: the numbers of docs/traces.md. Needs the data (see
docs/experiments.md): ``python docs/composition_table.py FOLDER``."""

import sys
from pathlib import Path

import numpy as np

import pglp_fast as pf
from pglp_fast.experiments.data import beijing, read_beijing

SIDES, STEPS = {"G_k9": 3, "G_k16": 4, "G_k25": 5}, 100


def main(folder: Path) -> None:
    _, fixes = read_beijing(folder)
    grid, rng = beijing(), np.random.default_rng(0)
    clean = fixes.clean(grid, max_speed_kmh=200)
    for minutes in (1, 5):
        gap = f"{10 * minutes}min"
        traces = clean.resample(grid, f"{minutes}min", max_gap=gap, carry=gap)
        pieces = traces.cut(STEPS // minutes, observed=1.0)
        users = np.unique(pieces.user.codes)
        rows = np.array([rng.choice(np.flatnonzero(pieces.user.codes == u)) for u in users])
        truth = pieces[rows].to_array()
        model = pf.MobilityModel.fit(grid, list(traces))
        for name, side in SIDES.items():
            T = pf.TraceReleaser(pf.blocks(grid, side), model, epsilon=1.0, rng=0)
            for steps in (10, 20, 50, 100):
                if steps > truth.shape[1]:
                    continue
                kept = T.run(truth[:, :steps]).certificate.ledger.kept_edges()
                print(
                    f"{minutes} min, {name}: {(kept == 0).sum()} of {len(kept)} users keep no edge "
                    f"after {steps} steps (median {np.median(kept):.0f} edges)",
                    flush=True,
                )


if __name__ == "__main__":
    main(Path(sys.argv[1]))

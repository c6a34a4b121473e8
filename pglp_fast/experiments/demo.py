"""The embedded example: a made-up city released under four policies by two mechanisms."""

import os
import time
from pathlib import Path

import numpy as np

import pglp_fast as pf
from pglp_fast import plot
from pglp_fast._util.storage import replacing
from pglp_fast.space.synthetic import City, synthetic_city

from .single import EPSILONS, paper_policies


def run_demo(
    out: str | os.PathLike[str] = "pglp-demo", *, people: int = 200_000, seed: int | None = 7
) -> Path:
    """Release the city, print a table of mean errors and certificates, draw a picture; returns
    the picture's path."""
    plot.pyplot()  # or an error, before the work, that says how to get it
    city = synthetic_city()
    true = city.people(people, seed=0)
    in_category = true[city.categories[true] >= 0]
    print(
        f"A made-up city: {city.grid.rows} x {city.grid.cols} cells of {city.grid.scale[0]} km, "
        f"{people:,} people."
    )
    if seed is not None:
        print(
            f"Seeded ({seed}) so that you see the same figures again; a release that protects "
            "people takes no seed."
        )
    print("\nMean error in km (certified: the promise was proved on the numbers sampled from)\n")
    print(
        f"{'policy':8}{'mechanism':11}"
        + "".join(f"{f'eps {e:g}':>9}" for e in EPSILONS)
        + f"{'certified':>11}"
    )
    errors: dict[tuple[str, str], list[float]] = {}
    started, released = time.perf_counter(), 0
    for name, graph in paper_policies(city.grid, city.categories).items():
        cells = in_category if name == "G_poi" else true
        # a linear program for each shape: those of blocks are few, those of categories many
        solved = () if name == "G_poi" else (pf.Optimal,)
        for mechanism in (pf.PLM, pf.PPIM, *solved):
            row, ok = [], True
            for epsilon in EPSILONS:
                m = mechanism(graph, epsilon=epsilon)
                row.append(float(city.grid.distance(cells, m.release(cells, rng=seed)).mean()))
                ok &= pf.certify(m).ok
                released += cells.size
            errors[name, mechanism.label] = row
            print(
                f"{name:8}{mechanism.label:11}"
                + "".join(f"{e:9.3f}" for e in row)
                + f"{'yes' if ok else 'NO':>11}"
            )
    print(
        f"\n{released:,} private releases, {len(errors) * len(EPSILONS)} certificates: "
        f"{time.perf_counter() - started:.1f} s"
    )
    path = _picture(city, errors, Path(out))
    print(f"Picture: {path}")
    return path


def _picture(city: City, errors: dict[tuple[str, str], list[float]], folder: Path) -> Path:
    plt = plot.pyplot()
    folder.mkdir(parents=True, exist_ok=True)
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5.4), layout="constrained")
    plot.heat(city.grid, city.density * 1000, ax=left, label="people per 1,000")
    m = pf.PPIM(pf.blocks(city.grid, 5), epsilon=1.0)
    for i, s in enumerate(np.array([[31, 31], [12, 42], [47, 17]]) @ np.array([city.grid.cols, 1])):
        plot.releases(m, int(s), ax=left, seed=i)
    handles, labels = left.get_legend_handles_labels()
    left.legend(handles[:3], labels[:3], loc="upper right", fontsize="small")
    left.set_title(
        "200 releases from each of three places (G_k25, P-PIM, eps = 1)", fontsize="medium"
    )
    plot.error_curves(EPSILONS, errors, ax=right)
    right.set_title(
        "Same promise, less error: P-LM, P-PIM and the optimal mechanism", fontsize="medium"
    )
    path = folder / "demo.png"
    with replacing(path) as beside:
        figure.savefig(beside, dpi=130)
    plt.close(figure)
    return path

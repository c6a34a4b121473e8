"""Compile every kernel once. Numba keeps the results on disk; warm the cache before a pool of processes starts."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from ._kernels import colouring, lines
from ._kernels.fields import epochs
from .attacks import attack
from .certify import certify
from .domain import Domain
from .exposure import isolated, repair
from .locations import Grid, Points
from .mechanisms import KRR, PLM, PPIM, PlanarLaplace, Remapped
from .metrics import estimate_utility, utility
from .mobility import MobilityModel
from .policy import PolicyGraph, blocks, categories, complete, neighbours8
from .sensitivity import sensitivity_hull
from .traces import TraceReleaser
from .tracks import read_geolife, read_table


def warm_up() -> None:
    """Go through the package as a release would: locations, policy, domain, hull, mechanism, certificate, trace, attack."""
    grid = Grid(6, 6)
    points = Points(np.random.default_rng(0).random((12, 2)))
    points.nearest([[0.5, 0.5]])
    domain = Domain(grid, np.arange(30))
    domain.cells(), domain.contains([1]), 3 in domain
    mixed = blocks(grid, 3).with_edges([[0, 35]])
    for graph in (mixed, categories(grid, np.arange(36) % 3, 6), neighbours8(grid), complete(points)):
        graph.edges(), graph.neighbours(0), graph.distance([0], [1]), (graph & graph).n_edges
        graph.constrain(Domain.full(graph.locations))
        sensitivity_hull(graph, 0).gauge([[1.0, 1.0]])
    PolicyGraph.from_scipy(grid, np.zeros((36, 36)))
    sensitivity_hull(mixed).contains([[1, 1]])
    for mechanism in (PLM, PPIM, PlanarLaplace):
        for sampler in ("table", "geometric"):
            m = mechanism(mixed, epsilon=1.0, domain=domain, sampler=sampler)
            m.release([0, 5], users=[9, 2], t=[1, 2])
            m.pmf(0), certify(m)
    PPIM(mixed, epsilon=1.0).table(0)
    certify(Remapped(KRR(mixed, epsilon=1.0)))
    utility(PPIM(mixed, epsilon=1.0), categories=np.arange(36) % 3)
    estimate_utility(grid, [0, 1, -1], [1, 1, 2], categories=np.arange(36) % 3)
    for calibration in ("component", "graph"):
        isolated(mixed, domain, calibration=calibration), repair(mixed, domain, calibration=calibration)
    model = MobilityModel.fit(grid, [[0, 1, 2]], unseen="neighbours8")
    model.forward(np.full(36, 1 / 36)), model.forward(np.full((2, 36), 1 / 36)), model.forward_sparse([0], [1.0])
    hows: list[dict[str, Any]] = [{}, {"mechanism": "krr", "remap": "euclidean"}]
    for how in hows:
        releaser = TraceReleaser(mixed, model, epsilon=1.0, **how)
        stream = releaser.start(2)
        stream.step([0, 1]), stream.step([1, -1])
        stream.domain(0)
        found = attack(releaser.run([[0, 1, -1]], evidence=True))
        found.posterior(0, 1), found.table()
    colouring.greedy(mixed.indptr, mixed.indices, np.empty(36, np.int64))
    _warm_up_tables()


def _warm_up_tables() -> None:
    """Read a text table and a PLT file, clean and resample."""
    grid, times = Grid(6, 6, origin=(0.0, 0.0)), np.zeros(1, np.int64)
    with TemporaryDirectory() as folder:
        table, plt = Path(folder, "table.csv"), Path(folder, "0", "Trajectory", "0.plt")
        plt.parent.mkdir(parents=True)
        rows = ("1,2020-01-01T00:00:00Z,0.01,0.01", "2,1577836800,0.010000000000000000001,0.01", "1,2020-01-01,0.01,0.01")
        table.write_text("\n".join(["user,time,lat,lon", *rows]))
        plt.write_text("\n" * 6 + "0.01,0.01,0,0,0,2020-01-01,00:00:00\n")
        read_geolife(folder)
        read_table(table).clean(grid, max_speed_kmh=1000).resample(grid, "1h")
    epochs(times, times, np.zeros(1, np.uint8))
    text, none = np.zeros(8, np.uint8), np.zeros(1, np.int64)
    lines.count_fields(text, 0, 1, 44)
    lines.join_lines(text, none, none + 2, 44, np.zeros(1, np.bool_), text, np.array([0, 1]), none, np.zeros(9, np.uint8))
    words = np.zeros(1, np.uint64)
    lines.add_hashes(none, words, words, words, words.copy(), none.copy())

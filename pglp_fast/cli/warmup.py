"""``pglp-fast warmup``: compile now what would be compiled later."""

import argparse
import subprocess
import sys
import time
from typing import Any

import pglp_fast as pf

from .options import Commands, add_json, command

_TEXT = """
Compile the kernels now, so that the first release does not wait. They are cached on disk; run it
once before a pool of processes starts.
"""


def add(commands: Commands) -> None:
    parser = command(
        commands,
        "warmup",
        "compile the kernels now, so that the first release does not wait",
        _TEXT,
        "pglp-fast warmup",
    )
    add_json(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    from .terminal import result

    started = time.perf_counter()
    warm_up()
    seconds = time.perf_counter() - started
    text = f"Kernels compiled and cached: {seconds:.1f} s. Later runs load them from disk."
    result(options.json, {"seconds": round(seconds, 3)}, text)


def warm_up() -> None:
    """Compile all that releases, traces, attacks and tables need: by two processes, which begin at
    the two ends. Each kernel is compiled by one of them, and read from disk by the other."""
    from pglp_fast._util.threads import get_num_threads

    if get_num_threads() == 1:
        return go_through()
    other = "from pglp_fast.cli.warmup import go_through; go_through(backwards=True)"
    with subprocess.Popen([sys.executable, "-c", other], stderr=subprocess.DEVNULL) as process:
        try:
            go_through()
        except BaseException:
            process.kill()
            raise


def go_through(*, backwards: bool = False) -> None:
    """Use the package as a release would, then a trace with its attack, then a table."""
    parts = [_warm_up_releases, _warm_up_traces, _warm_up_tables]
    for part in reversed(parts) if backwards else parts:
        part()


def _warm_up_releases() -> None:
    """Locations, policy, domain, hull, mechanism, certificate, utility, exposure."""
    import numpy as np

    from pglp_fast.policy.outlines import clique_hulls, colour_apart

    grid = pf.Grid(6, 6)
    points = pf.Points(np.random.default_rng(0).random((12, 2)))
    points.nearest([[0.5, 0.5]])
    domain = pf.Domain(grid, np.arange(30))
    domain.cells(), domain.contains([1]), 3 in domain
    mixed = pf.blocks(grid, 3).with_edges([[0, 35]])
    for graph in (
        mixed,
        pf.categories(grid, np.arange(36) % 3, 6),
        pf.neighbours8(grid),
        pf.complete(points),
    ):
        graph.edges(), graph.neighbours(0), graph.distance([0], [1]), (graph & graph).n_edges
        graph.constrain(pf.Domain.full(graph.locations))
        pf.sensitivity_hull(graph, 0).gauge([[1.0, 1.0]])
    pf.PolicyGraph.from_scipy(grid, np.zeros((36, 36)))
    pf.sensitivity_hull(mixed).contains([[1, 1]])
    for mechanism in (pf.PLM, pf.PPIM, pf.PlanarLaplace):
        for sampler in ("table", "geometric"):
            m = mechanism(mixed, epsilon=1.0, domain=domain, sampler=sampler)
            m.release([0, 5], users=[9, 2], t=[1, 2])
            m.pmf(0), pf.certify(m)
    pf.PPIM(mixed, epsilon=1.0).table(0)
    pf.certify(pf.Remapped(pf.KRR(mixed, epsilon=1.0)))
    pf.utility(pf.PPIM(mixed, epsilon=1.0), categories=np.arange(36) % 3)
    pf.estimate_utility(grid, [0, 1, -1], [1, 1, 2], categories=np.arange(36) % 3)
    for calibration in ("component", "graph"):
        pf.isolated(mixed, domain, calibration=calibration)
        pf.repair(mixed, domain, calibration=calibration)
    colour_apart(2, np.array([[0, 1]], np.int32))
    clique_hulls(mixed, np.ones(36, np.bool_))


def _warm_up_traces() -> None:
    """Mobility, traces by a noise and by a table, streams, attacks."""
    import numpy as np

    grid = pf.Grid(6, 6)
    mixed = pf.blocks(grid, 3).with_edges([[0, 35]])
    model = pf.MobilityModel.fit(grid, [[0, 1, 2]], unseen="neighbours8")
    model.forward(np.full(36, 1 / 36)), model.forward(np.full((2, 36), 1 / 36))
    model.forward_sparse([0], [1.0])
    hows: list[dict[str, Any]] = [{}, {"mechanism": "krr", "remap": "euclidean"}]
    for how in hows:
        releaser = pf.TraceReleaser(mixed, model, epsilon=1.0, **how)
        stream = releaser.start(2)
        stream.step([0, 1]), stream.step([1, -1])
        stream.domain(0)
        found = pf.attack(releaser.run([[0, 1, -1]], evidence=True))
        found.posterior(0, 1), found.table()


def _warm_up_tables() -> None:
    """Clean and resample tracks, and know fixes again."""
    from pglp_fast.io.fix_hashes import hash_fixes

    grid = pf.Grid(6, 6, origin=(0.0, 0.0))
    tracks = pf.Tracks.of([1, 2, 1], ["2020-01-01"] * 3, [0.01] * 3, [0.01] * 3)
    tracks.clean(grid, max_speed_kmh=1000).resample(grid, "1h")
    hash_fixes(tracks)

"""Cases: what is said of bad input. The type of the error and its text."""

import tempfile
from pathlib import Path

import numpy as np
from golden_maps import grid, points
from golden_traces import model
from scipy import sparse as sp

import pglp_fast as pf


def _calls(folder):
    g, p = grid(), points()
    G = pf.blocks(g, 3)
    C = pf.Domain(g, [0, 1, 5])
    m = pf.PPIM(G, epsilon=1.0)
    M = model()
    T = pf.TraceReleaser(G, M, epsilon=1.0, rng=1)
    other = pf.Grid(3, 3)
    bad = folder / "bad.csv"
    bad.write_text("user,time,lat,lon\na,2020-01-01,35,139\na,never,35,139\n")
    few = folder / "few.csv"
    few.write_text("who,when\na,b\n")
    junk = folder / "junk"
    junk.write_bytes(b"junk")
    half = sp.csr_array(np.eye(42) * 0.5)
    tracks = pf.Tracks.of(
        ["a", "b"], np.array([0, 1], "datetime64[s]"), [35.0, 35.0], [139.0, 139.0]
    )
    return {
        "grid rows": lambda: pf.Grid(0, 3),
        "grid cell": lambda: pf.Grid(2, 2, cell_km=-1),
        "grid bounds": lambda: pf.Grid.from_bounds(lat=(36, 35), lon=(139, 140), cell_km=1),
        "grid xy": lambda: g.xy([42]),
        "grid latlon": lambda: pf.Grid(2, 2).latlon([0]),
        "grid floats": lambda: g.xy([0.5]),
        "points shape": lambda: pf.Points([[1.0, 2.0, 3.0]]),
        "points same": lambda: pf.Points([[0.0, 0.0], [0.0, 0.0]]),
        "points nan": lambda: pf.Points([[0.0, np.nan]]),
        "blocks size": lambda: pf.blocks(g, 0),
        "blocks points": lambda: pf.blocks(p, 3),
        "neighbours points": lambda: pf.neighbours8(p),
        "labels": lambda: pf.categories(g, [1, 2], 3),
        "edges range": lambda: pf.PolicyGraph.from_edges(g, [[0, 42]]),
        "edges shape": lambda: pf.PolicyGraph.from_edges(g, [[0, 1, 2]]),
        "edges loop": lambda: pf.PolicyGraph.from_edges(g, [[3, 3]]),
        "scipy shape": lambda: pf.PolicyGraph.from_scipy(g, sp.csr_array((3, 3))),
        "scipy one way": lambda: pf.PolicyGraph.from_scipy(g, sp.csr_array(np.eye(42, k=1))),
        "and": lambda: G & pf.blocks(other, 3),
        "with edges": lambda: G.with_edges([[-1, 2]]),
        "neighbours": lambda: G.neighbours(99),
        "domain range": lambda: pf.Domain(g, [42]),
        "domain mask": lambda: pf.Domain.from_mask(g, [True]),
        "domain and": lambda: C & pf.Domain(other, [1]),
        "isolated": lambda: pf.isolated(G, [1, 2]),
        "isolated map": lambda: pf.isolated(G, pf.Domain(other, [1])),
        "calibration": lambda: pf.isolated(G, C, calibration="none"),
        "strategy": lambda: pf.repair(G, C, strategy="best"),
        "words": lambda: pf.repair_many(G, np.zeros((2, 3), np.uint64)),
        "bits": lambda: pf.isolated_many(G, np.full((1, 1), 2**63, np.uint64)),
        "epsilon": lambda: pf.PPIM(G, epsilon=0),
        "epsilon text": lambda: pf.PLM(G, epsilon="one"),
        "no policy": lambda: pf.PPIM(g, epsilon=1),
        "sampler": lambda: pf.PPIM(G, epsilon=1, sampler="fast"),
        "mechanism domain": lambda: pf.PPIM(G, epsilon=1, domain=pf.Domain(other, [1])),
        "release range": lambda: m.release([42]),
        "release outside": lambda: pf.PPIM(G, epsilon=1, domain=C).release([40]),
        "release twice": lambda: m.release([1, 2], users=[3, 3]),
        "release users": lambda: m.release([1, 2], users=[3]),
        "release seed": lambda: m.release([1], rng=-1),
        "matrix": lambda: m.matrix(42),
        "pmf outside": lambda: pf.PPIM(G, epsilon=1, domain=C).pmf(40),
        "table geometric": lambda: pf.PPIM(G, epsilon=1, sampler="geometric").table(0),
        "matrix large": lambda: pf.PPIM(pf.complete(pf.Grid(60, 60)), epsilon=1).matrix(0),
        "krr large": lambda: pf.KRR(pf.complete(pf.Grid(60, 60)), epsilon=1),
        "optimal large": lambda: pf.Optimal(pf.complete(pf.Grid(13, 13)), epsilon=1),
        "optimal loss": lambda: pf.Optimal(G, epsilon=1, loss="far"),
        "optimal prior": lambda: pf.Optimal(G, epsilon=1, prior=[1.0]),
        "remapped twice": lambda: pf.Remapped(pf.Remapped(m)),
        "geo_ind": lambda: pf.geo_ind(g, epsilon_per_km=-1),
        "pim": lambda: pf.PIM(G, epsilon=1),
        "certify": lambda: pf.certify(G),
        "utility prior": lambda: pf.utility(m, prior=np.zeros(42)),
        "utility quantiles": lambda: pf.utility(m, quantiles=[2.0]),
        "estimate": lambda: pf.estimate_utility(g, [1, 2], [1]),
        "privacy": lambda: pf.privacy(G),
        "compare": lambda: pf.compare({}),
        "model rows": lambda: pf.MobilityModel(g, half),
        "model shape": lambda: pf.MobilityModel(g, sp.csr_array(np.eye(3))),
        "model empty row": lambda: pf.MobilityModel(g, sp.csr_array((42, 42))),
        "fit": lambda: pf.MobilityModel.fit(g, [[0, 99]]),
        "fit unseen": lambda: pf.MobilityModel.fit(g, [[0, 1]], unseen="guess"),
        "forward": lambda: M.forward([1.0]),
        "forward period": lambda: M.forward(np.ones(42) / 42, period=1),
        "load": lambda: pf.MobilityModel.open(junk),
        "traces model": lambda: pf.TraceReleaser(G, G, epsilon=1),
        "traces map": lambda: pf.TraceReleaser(pf.blocks(other, 3), M, epsilon=1),
        "traces mechanism": lambda: pf.TraceReleaser(G, M, epsilon=1, mechanism="x"),
        "traces graph": lambda: pf.TraceReleaser(
            G, M, epsilon=1, mechanism="krr", calibration="graph"
        ),
        "traces density": lambda: pf.TraceReleaser(
            G, M, epsilon=1, remap="squared", likelihood="density"
        ),
        "traces pim": lambda: pf.TraceReleaser(G, M, epsilon=1, mechanism="pim"),
        "traces delta": lambda: pf.TraceReleaser(G, M, epsilon=1, delta=1.0),
        "traces options": lambda: pf.TraceReleaser(G, M, epsilon=1, options={"loss": "squared"}),
        "run shape": lambda: T.run([1, 2]),
        "run range": lambda: T.run([[1, 2], [3, 42]]),
        "run priors": lambda: T.run([[1]], priors=np.ones(3)),
        "run prior name": lambda: T.run([[1]], priors="even"),
        "step cells": lambda: T.start(users=2).step([1]),
        "step user": lambda: T.start(users=2).posterior(5),
        "point": lambda: T.start(users=2, priors="point").posterior(0),
        "resume": lambda: T.resume(junk),
        "observe": lambda: T.observe([[0]], priors="point"),
        "observe truth": lambda: T.observe([[0, 41]]),
        "attack": lambda: pf.attack(T.run([[0]])),
        "read column": lambda: pf.read_table(few),
        "read line": lambda: pf.read_table(bad),
        "read nothing": lambda: pf.read_table(folder / "none.csv"),
        "read geolife": lambda: pf.read_geolife(folder / "none"),
        "clean": lambda: tracks.clean(duplicates="some"),
        "resample step": lambda: tracks.resample(g, "soon"),
        "resample rule": lambda: tracks.resample(g, "5min", rule="mean"),
        "threads": lambda: pf.set_num_threads(0),
        "experiment": lambda: pf.experiments.run("none", out=None),
        "report": lambda: pf.write_report(junk, m),
    }


def errors():
    out = {}
    with tempfile.TemporaryDirectory() as name:
        for case, call in _calls(Path(name)).items():
            try:
                said = f"no error: {type(call()).__name__}"
            except Exception as error:  # whatever it is, its type is recorded
                kinds = [k.__name__ for k in type(error).__mro__ if k.__module__.startswith("pglp")]
                text = str(error).replace(name, "FOLDER")
                value = isinstance(error, ValueError)
                said = {"type": type(error).__name__, "kinds": kinds, "value": value, "text": text}
            out[case] = said
    return out


GROUPS = {"errors": errors}

"""Cases: maps, policies, domains, exposure and repair, hulls."""

import numpy as np
from golden_maps import domain, grid, points, policies

import pglp_fast as pf

STRATEGIES = ("min-area", "nearest", "arbitrary", "min-error")


def maps():
    g, p = grid(), points()
    bounds = pf.Grid.from_bounds(lat=(35.68, 35.80), lon=(139.60, 139.75), cell_km=0.27)
    far = pf.Points.from_latlon([35.6, 35.61, 35.7], [139.5, 139.52, 139.4], resolution_km=0.01)
    rng = np.random.default_rng(1)
    lat, lon = rng.uniform(35.59, 35.65, 40), rng.uniform(139.49, 139.55, 40)
    out = {}
    for name, m in (("grid", g), ("points", p), ("bounds", bounds), ("latlon", far)):
        some = np.arange(min(m.size, 40))
        xy = rng.uniform(-1, 5, (30, 2))
        out[name] = {
            "repr": repr(m),
            "size": m.size,
            "distance": m.distance(some, some[::-1]),
            "nearest": m.nearest(xy),
            "xy": m.xy(some) if isinstance(m, pf.Grid) else np.asarray(m.xy),
        }
        if name != "points":
            out[name]["latlon"] = m.latlon(some)
        if isinstance(m, pf.Grid):
            out[name] |= {"rows": m.rows, "cols": m.cols, "locate": m.locate(lat, lon)}
            out[name]["facts"] = repr(m.to_dict())
    return out


def graph(G):
    n = G.locations.size
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, n, (2, 50))
    return {
        "repr": repr(G),
        "edges": G.edges(),
        "n_edges": G.n_edges,
        "components": G.components,
        "indptr": G.indptr,
        "indices": G.indices,
        "degrees": G.degrees(),
        "distance": G.distance(a, b),
        "has": G.has_edges(np.stack([a, b], axis=1)),
        "neighbours": [G.neighbours(int(s)) for s in (0, n // 2, n - 1)],
        "component": [G.component(int(s)) for s in (0, n // 2, n - 1)],
    }


def graphs():
    out = {}
    for name, G in policies().items():
        n = G.locations.size
        C = domain(G.locations, 0.5, 12)
        H = pf.complete(G.locations, np.arange(0, n, 2))
        more = [[0, n - 1], [1, n // 2], [2, 7]]
        out[name] = graph(G)
        out[f"{name}, constrain"] = graph(G.constrain(C))
        out[f"{name}, and"] = graph(G & H)
        out[f"{name}, with edges"] = graph(G.with_edges(more))
        out[f"{name}, all"] = graph((G.with_edges(more) & H.with_edges(more)).constrain(C))
    out["complete"] = graph(pf.complete(pf.Grid(3, 3)))
    out["no block"] = graph(pf.categories(grid(), np.arange(42) % 5, None))
    return out


def domains():
    out = {}
    for name, locations in (("grid", grid()), ("points", points()), ("long", pf.Grid(13, 10))):
        C, D = domain(locations, 0.5, 1), domain(locations, 0.4, 2)
        made = {"C": C, "and": C & D, "or": C | D, "not": ~C, "full": pf.Domain.full(locations)}
        made["cells"] = pf.Domain(locations, [3, 1, 3, 0])
        out[name] = {
            k: {
                "cells": d.cells(),
                "words": d.words,
                "len": len(d),
                "mask": d.mask(),
                "in": [s in d for s in range(6)],
                "contains": d.contains(np.arange(12)),
                "repr": repr(d),
            }
            for k, d in made.items()
        }
    return out


def exposure():
    out = {}
    for name, G in policies().items():
        drawn = [
            domain(G.locations, share, seed) for seed, share in enumerate((0.1, 0.25, 0.4, 0.6))
        ]
        drawn += [pf.Domain(G.locations, [5]), pf.Domain(G.locations, [0, G.locations.size - 1])]
        words = np.stack([C.words for C in drawn])
        for calibration in ("component", "graph"):
            many = pf.isolated_many(G, words, calibration=calibration)
            out[f"{name}, {calibration}, isolated"] = {
                "many": vars(many),
                "each": [pf.isolated(G, C, calibration=calibration) for C in drawn],
                "disconnected": [pf.disconnected(G, C) for C in drawn],
            }
            for strategy in STRATEGIES:
                how = {"strategy": strategy, "calibration": calibration}
                each = [pf.repair(G, C, **how) for C in drawn]
                out[f"{name}, {calibration}, {strategy}"] = {
                    "many": vars(pf.repair_many(G, words, **how)),
                    "each": [
                        {
                            "added": r.added,
                            "exposed": r.exposed,
                            "edges": r.graph.edges(),
                            "counts": [r.disconnected, r.isolated],
                        }
                        for r in each
                    ],
                }
    return out


def hulls():
    out = {}
    xy = np.random.default_rng(3).normal(size=(20, 2))
    for name, G in policies().items():
        n = G.locations.size
        for s in (None, 0, 20, n - 1):
            h = pf.sensitivity_hull(G, s)
            facts = {
                "vertices": h.vertices,
                "km": h.vertices_km,
                "area": h.area_km2,
                "rank": h.rank,
            }
            facts["gauge"] = h.gauge(xy)
            facts["contains"] = h.contains(np.argwhere(np.ones((3, 3))) - 1)
            out[f"{name}, {s}"] = facts | {"text": str(h)}
    return out


GROUPS = {
    "maps": maps,
    "policies": graphs,
    "domains": domains,
    "exposure": exposure,
    "hulls": hulls,
}

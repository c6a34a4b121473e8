"""The figures of a report, as the public functions give them: what is shown is what they return."""

from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

import pglp_fast as pf
from pglp_fast._util.stats import Clusters, mean_interval
from pglp_fast.evaluation.utility_result import QUANTILES
from pglp_fast.space.locations import Locations

from . import limits
from .laid import Followed

LEVEL = 0.95
_CDF = (*np.round(np.arange(0.01, 1.0, 0.01), 2).tolist(), 0.995, 0.999)
_PERSONS = 5  # that an interval at a step needs
Figures = dict[str, Any]


def map_figures(locations: Locations) -> Figures:
    dx, dy = locations.scale
    out: Figures = {
        "kind": "grid" if isinstance(locations, pf.Grid) else "points",
        "size": locations.size,
        "dx": dx,
        "dy": dy,
    }
    if isinstance(locations, pf.Grid):
        out |= {
            "rows": locations.rows,
            "cols": locations.cols,
            "width_km": locations.cols * dx,
            "height_km": locations.rows * dy,
        }
    else:
        width, height = np.ptp(locations.lattice, axis=0) * np.asarray(locations.scale)
        out |= {"width_km": float(width), "height_km": float(height)}
    if locations.projection is not None:  # latitude and longitude are linear in km
        middle = np.asarray(locations.scale) / 2 if isinstance(locations, pf.Grid) else np.zeros(2)
        (lat, lon), (north, east) = locations.projection.to_latlon(
            np.array([middle, middle + 1.0])
        ).tolist()
        out["latlon"] = [lat, north - lat, lon, east - lon]
    return out


def policy_figures(graph: pf.PolicyGraph) -> Figures:
    """Components by size, edges, and who has none."""
    sizes = np.bincount(np.bincount(graph.components))
    found = np.flatnonzero(sizes)
    degrees = graph.degrees()
    return {
        "locations": graph.locations.size,
        "edges": graph.n_edges,
        "components": int(sizes[2:].sum()),
        "without_edges": int(np.count_nonzero(degrees == 0)),
        "sizes": [[int(k), int(sizes[k])] for k in found if k > 1],
        "largest_degree": int(degrees.max(initial=0)),
    }


def trace_certificate(c: pf.TraceCertificate) -> Figures:
    """What is proved of all releases of traces."""
    names = ("ok", "reason", "worst", "rounding", "tables", "noises", "releases", "exposed")
    epsilons = sorted(c.delivered) or [c.promised]
    said = {"epsilons": epsilons, "verdict": c.verdict.told}
    return {name: getattr(c, name) for name in names} | said


def kept_figures(ledger: pf.Ledger, labelled: dict[int, str]) -> Figures:
    """What composition leaves: of how many traces with a release an edge, and of those on the
    map."""
    kept, made = ledger.kept_edges(), ledger.releases > 0
    return {
        "of": int(made.sum()),
        "kept": int((kept[made] > 0).sum()),
        "users": [
            {"label": label, "epsilon": ledger.epsilon(row), "edges": int(kept[row])}
            for row, label in labelled.items()
        ],
    }


def utility_figures(u: pf.Utility) -> Figures:
    """The single figures, less the cumulative distribution, which is ``cdf``: [km, share] pairs."""
    out: Figures = {name: value for name, value in u.as_dict().items() if not name.startswith("q")}
    out["quantiles"] = [[q, u.quantiles[q]] for q in QUANTILES]
    out["quantile_intervals"] = [
        list(u.intervals[f"q{q!r}"]) if f"q{q!r}" in u.intervals else None for q in QUANTILES
    ]
    return out


def exact_utility(
    m: pf.Mechanism, prior: ArrayLike | None, categories: ArrayLike | None
) -> tuple[Figures | None, Figures | None]:
    """(figures, curve) of the expected errors; nothing where the output sets are too large for
    exact answers."""
    wanted = tuple(dict.fromkeys((*QUANTILES, *_CDF)))
    try:
        u = pf.utility(m, prior=prior, categories=categories, quantiles=wanted)
    except pf.TooLarge:
        return None, None
    km = [*(u.quantiles[q] for q in _CDF), u.largest]
    return utility_figures(u), {"km": km, "share": [*_CDF, 1.0]}


def exact_privacy(m: pf.Mechanism, prior: ArrayLike | None) -> Figures | None:
    try:
        return asdict(pf.privacy(m, prior=prior))
    except pf.TooLarge:
        return None


def attack_figures(table: pf.AttackTable) -> Figures:
    return asdict(table)


def exact_certificate(m: pf.Mechanism) -> Figures:
    found = pf.certify(m)
    return asdict(found) | {"verdict": found.verdict}


def cumulative(distance: NDArray[np.float64]) -> Figures:
    """Share of releases within each distance, at every hundredth of them, and all of them."""
    ordered = np.sort(distance)
    at = np.clip(np.ceil(np.asarray(_CDF) * ordered.size).astype(int) - 1, 0, ordered.size - 1)
    return {"km": [*ordered[at].tolist(), float(ordered[-1])], "share": [*_CDF, 1.0]}


def over_time(distance: NDArray[np.float64], person: NDArray[np.int64]) -> Figures:
    """Mean of (traces, T) distances at each step, NaN left out, with intervals between persons;
    long traces in equal parts."""
    T = distance.shape[1]
    width = max(1, -(-T // limits.CHART))
    steps, means, low, high = [], [], [], []
    for first in range(0, T, width):
        part = distance[:, first : first + width]
        values, whose = part[~np.isnan(part)], person[np.nonzero(~np.isnan(part))[0]]
        if not values.size:
            continue
        a = b = np.nan
        if len(np.unique(whose)) >= _PERSONS:  # of fewer an interval spans everything
            a, b = mean_interval(values, LEVEL, Clusters.of(whose))
        steps.append(first + (min(width, T - first) - 1) / 2)
        means.append(float(values.mean()))
        low.append(a)
        high.append(b)
    return {"step": steps, "mean": means, "low": low, "high": high, "width": width, "level": LEVEL}


def distances(locations: Locations, a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.float64]:
    """Of cells of one shape, NaN where either is missing."""
    out = np.full(a.shape, np.nan)
    both = (a >= 0) & (b >= 0)
    out[both] = locations.distance(a[both], b[both])
    return out


def error_curves(followed: Followed, person: NDArray[np.int64]) -> Figures:
    """Errors of release and best guess at each step with a release: from the truth, or else as
    the adversary expects them; ``person`` of each trace."""
    released, truth = followed.released, followed.truth
    counted = released >= 0
    locations = followed.attack.evidence.model.locations
    if truth is not None:
        each = {
            "release": distances(locations, released, truth),
            "guess": distances(locations, followed.bayes, truth),
        }
    else:
        each = {"release": followed.release_error, "guess": followed.expected_error}
    out: Figures = {"kind": "error" if truth is not None else "expected"}
    for name, values in each.items():
        masked = np.where(counted, values, np.nan)
        if np.isnan(masked).all():
            continue
        out[name] = {
            "time": over_time(masked, person),
            "cdf": cumulative(masked[~np.isnan(masked)]),
        }
    return out


def flag_figures(result: Any, followed: Followed) -> Figures:
    """How many of the steps with a release were what."""
    released, surrogate = followed.released, followed.surrogate
    made = released >= 0
    out: Figures = {
        "steps": int(made.sum()),
        "missing": followed.laid.silent,
        "exposed": int((result.exposed & made).sum()),
        "repaired": int(((result.added > 0) & made).sum()),
        "edges_added": int(result.added[made].sum()),
        "disconnected": int(((result.disconnected > 0) & made).sum()),
        "domain_mean": float(result.domain_size[made].mean()) if made.any() else None,
        "domain_median": float(np.median(result.domain_size[made])) if made.any() else None,
        "surrogate": None if surrogate is None else int((surrogate & made).sum()),
    }
    return out

"""The figures of a report, as the public functions give them: what is shown is what they return."""

import math
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..attacks import Attack, AttackTable
from ..certify import Certificate, certify
from ..errors import TooLarge
from ..inference import privacy
from ..intervals import Clusters, Interval, mean_interval
from ..locations import Grid, Locations
from ..mechanisms.base import Mechanism
from ..metrics import QUANTILES, Utility, utility
from ..policy import PolicyGraph
from . import limits

LEVEL = 0.95
_CDF = tuple(np.round(np.arange(0.01, 1.0, 0.01), 2).tolist())
Figures = dict[str, Any]


def map_figures(locations: Locations) -> Figures:
    dx, dy = locations.scale
    out: Figures = {"kind": "grid" if isinstance(locations, Grid) else "points", "size": locations.size, "dx": dx, "dy": dy}
    if isinstance(locations, Grid):
        out |= {"rows": locations.rows, "cols": locations.cols, "width_km": locations.cols * dx, "height_km": locations.rows * dy}
    else:
        width, height = np.ptp(locations.lattice, axis=0) * np.asarray(locations.scale)
        out |= {"width_km": float(width), "height_km": float(height)}
    if locations.projection is not None:  # latitude and longitude are linear in km
        middle = np.asarray(locations.scale) / 2 if isinstance(locations, Grid) else np.zeros(2)
        (lat, lon), (north, east) = locations.projection.to_latlon(np.array([middle, middle + 1.0])).tolist()
        out["latlon"] = [lat, north - lat, lon, east - lon]
    return out


def policy_figures(graph: PolicyGraph) -> Figures:
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


def certificate_figures(certificates: Iterable[Certificate]) -> Figures:
    """Many certificates as one: it holds if all hold, and delivers what the worst delivers."""
    every = list(certificates)
    worst = max(every, key=lambda c: (not c.ok, c.worst))
    return {**asdict(worst), "count": len(every), "rounding": max(c.rounding for c in every)}


def utility_figures(u: Utility) -> Figures:
    """The single figures, less the cumulative distribution, which is ``cdf``: [km, share] pairs."""
    out: Figures = {name: value for name, value in u.as_dict().items() if not name.startswith("q")}
    out["quantiles"] = [[q, u.quantiles[q]] for q in QUANTILES]
    out["quantile_intervals"] = [list(u.intervals[f"q{q!r}"]) if f"q{q!r}" in u.intervals else None for q in QUANTILES]
    return out


def exact_utility(m: Mechanism, prior: ArrayLike | None, categories: ArrayLike | None) -> tuple[Figures | None, Figures | None]:
    """(figures, curve) of the expected errors; nothing where the output sets are too large for exact answers."""
    wanted = tuple(dict.fromkeys((*QUANTILES, *_CDF)))
    try:
        u = utility(m, prior=prior, categories=categories, quantiles=wanted)
    except TooLarge:
        return None, None
    return utility_figures(u), {"km": [u.quantiles[q] for q in _CDF], "share": list(_CDF)}


def exact_privacy(m: Mechanism, prior: ArrayLike | None) -> Figures | None:
    try:
        return asdict(privacy(m, prior=prior))
    except TooLarge:
        return None


def attack_figures(table: AttackTable) -> Figures:
    return asdict(table)


def exact_certificate(m: Mechanism) -> Figures:
    return certificate_figures([certify(m)])


def cumulative(distance: NDArray[np.float64]) -> Figures:
    """Share of releases within each distance, at every hundredth of them."""
    ordered = np.sort(distance)
    at = np.clip(np.ceil(np.asarray(_CDF) * ordered.size).astype(int) - 1, 0, ordered.size - 1)
    return {"km": ordered[at].tolist(), "share": list(_CDF)}


def over_time(distance: NDArray[np.float64]) -> Figures:
    """Mean of (users, T) distances at each step, NaN left out, with intervals between users; long traces in equal parts."""
    T = distance.shape[1]
    width = max(1, -(-T // limits.CHART))
    steps, means, low, high = [], [], [], []
    for first in range(0, T, width):
        part = distance[:, first : first + width]
        user = np.nonzero(~np.isnan(part))[0]
        values = part[~np.isnan(part)]
        if not values.size:
            continue
        a, b = _interval(values, user)
        steps.append(first + (min(width, T - first) - 1) / 2)
        means.append(float(values.mean()))
        low.append(a)
        high.append(b)
    return {"step": steps, "mean": means, "low": low, "high": high, "width": width, "level": LEVEL}


def _interval(values: NDArray[np.float64], user: NDArray[np.int64]) -> Interval:
    return mean_interval(values, LEVEL, Clusters.of(user))


def distances(locations: Locations, a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.float64]:
    """Of cells of one shape, NaN where either is missing."""
    out = np.full(a.shape, np.nan)
    both = (a >= 0) & (b >= 0)
    out[both] = locations.distance(a[both], b[both])
    return out


def error_curves(attack: Attack, truth: NDArray[Any] | None) -> Figures:
    """Errors of release and best guess at each step with a release: from the truth, or else as the adversary expects them."""
    released = attack.evidence.released
    counted = released >= 0
    locations = attack.evidence.model.locations
    if truth is not None:
        each = {"release": distances(locations, released, truth), "guess": distances(locations, attack.bayes, truth)}
    else:
        each = {"release": attack.errors["released"], "guess": attack.expected_error}
    out: Figures = {"kind": "error" if truth is not None else "expected"}
    for name, values in each.items():
        masked = np.where(counted, values, np.nan)
        if np.isnan(masked).all():
            continue
        out[name] = {"time": over_time(masked), "cdf": cumulative(masked[~np.isnan(masked)])}
    return out


def flag_figures(result: Any, released: NDArray[Any], surrogate: NDArray[np.bool_] | None) -> Figures:
    """How many of the steps with a release were what."""
    made = released >= 0
    out: Figures = {
        "steps": int(made.sum()),
        "missing": int((~made).sum()),
        "exposed": int((result.exposed & made).sum()),
        "repaired": int(((result.added > 0) & made).sum()),
        "edges_added": int(result.added[made].sum()),
        "disconnected": int(((result.disconnected > 0) & made).sum()),
        "domain_mean": float(result.domain_size[made].mean()) if made.any() else None,
        "domain_median": float(np.median(result.domain_size[made])) if made.any() else None,
        "surrogate": None if surrogate is None else int((surrogate & made).sum()),
    }
    return out


def plain(value: Any) -> Any:
    """As JSON takes it: arrays as lists, and None for what is not a number."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value

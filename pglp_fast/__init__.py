"""pglp_fast: private locations under Policy Graph based Location Privacy, exact, certified and fast.

>>> import pglp_fast as pf
>>> g = pf.Grid(30, 30, cell_km=0.5)
>>> m = pf.PPIM(pf.blocks(g, 3), epsilon=1.0)
>>> released = m.release([0, 31, 899])
>>> pf.certify(m).ok
True
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from . import experiments, plot
    from .attacks import Attack, AttackTable, attack
    from .certify import Certificate, certify
    from .domain import Domain
    from .errors import (
        BudgetExceeded,
        InvalidDomain,
        InvalidEvidence,
        InvalidLocation,
        InvalidParameter,
        InvalidPolicy,
        InvalidState,
        InvalidTable,
        InvalidTransition,
        MissingPackage,
        PGLPError,
        TooLarge,
    )
    from .evidence import Evidence
    from .exposure import Exposure, Repair, Repairs, disconnected, isolated, isolated_many, repair, repair_many
    from .inference import Comparison, Privacy, compare, privacy
    from .locations import Grid, Points
    from .mechanisms import KRR, LM, PIM, PLM, PPIM, GraphExponential, Mechanism, Optimal, PlanarLaplace, Remapped, geo_ind
    from .metrics import Utility, Worst, estimate_utility, utility
    from .mobility import MobilityModel, day_period
    from .policy import PolicyGraph, blocks, categories, complete, neighbours8
    from .report import report_table, write_report
    from .sensitivity import SensitivityHull, sensitivity_hull
    from .stream import Stream, TraceResult
    from .threads import get_num_threads, set_num_threads
    from .traces import TraceReleaser
    from .tracks import (
        POIs,
        Traces,
        Tracks,
        iter_table,
        read_foursquare,
        read_geolife,
        read_gowalla,
        read_peopleflow_pois,
        read_table,
    )

# everything is imported when first asked for: ``pglp-fast --help`` and errors need no compiler
_LATER = {
    "certify": ("Certificate", "certify"),
    "domain": ("Domain",),
    "errors": (
        "BudgetExceeded", "InvalidDomain", "InvalidEvidence", "InvalidLocation", "InvalidParameter", "InvalidPolicy",
        "InvalidState", "InvalidTable", "InvalidTransition", "MissingPackage", "PGLPError", "TooLarge",
    ),
    "locations": ("Grid", "Points"),
    "mechanisms": (
        "KRR", "LM", "PIM", "PLM", "PPIM", "GraphExponential", "Mechanism", "Optimal", "PlanarLaplace", "Remapped", "geo_ind",
    ),
    "policy": ("PolicyGraph", "blocks", "categories", "complete", "neighbours8"),
    "sensitivity": ("SensitivityHull", "sensitivity_hull"),
    "threads": ("get_num_threads", "set_num_threads"),
    "attacks": ("Attack", "AttackTable", "attack"),
    "evidence": ("Evidence",),
    "exposure": ("Exposure", "Repair", "Repairs", "disconnected", "isolated", "isolated_many", "repair", "repair_many"),
    "metrics": ("Utility", "Worst", "estimate_utility", "utility"),
    "mobility": ("MobilityModel", "day_period"),
    "inference": ("Comparison", "Privacy", "compare", "privacy"),
    "report": ("report_table", "write_report"),
    "stream": ("Stream", "TraceResult"),
    "traces": ("TraceReleaser",),
    "tracks": (
        "POIs", "Traces", "Tracks", "iter_table", "read_foursquare", "read_geolife", "read_gowalla", "read_peopleflow_pois",
        "read_table",
    ),
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in ("plot", "experiments"):
        return import_module(f".{name}", __name__)
    for module, names in _LATER.items():
        if name in names:
            value = globals()[name] = getattr(import_module(f".{module}", __name__), name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))


class _Face(ModuleType):
    """The package itself. ``pf.certify`` is the function, whoever imports the module of that name first."""

    @property
    def certify(self) -> Any:
        return import_module(".certify", __name__).certify

    @certify.setter
    def certify(self, value: Any) -> None:
        """The import system binds the module here; it stays in ``sys.modules``."""


sys.modules[__name__].__class__ = _Face

__all__ = [
    "KRR",
    "LM",
    "PIM",
    "PLM",
    "PPIM",
    "Attack",
    "AttackTable",
    "BudgetExceeded",
    "Certificate",
    "Comparison",
    "Domain",
    "Evidence",
    "Exposure",
    "GraphExponential",
    "Grid",
    "InvalidDomain",
    "InvalidEvidence",
    "InvalidLocation",
    "InvalidParameter",
    "InvalidPolicy",
    "InvalidState",
    "InvalidTable",
    "InvalidTransition",
    "Mechanism",
    "MissingPackage",
    "MobilityModel",
    "Optimal",
    "PGLPError",
    "POIs",
    "PlanarLaplace",
    "Points",
    "PolicyGraph",
    "Privacy",
    "Remapped",
    "Repair",
    "Repairs",
    "SensitivityHull",
    "Stream",
    "TooLarge",
    "TraceReleaser",
    "TraceResult",
    "Traces",
    "Tracks",
    "Utility",
    "Worst",
    "__version__",
    "attack",
    "blocks",
    "categories",
    "certify",
    "compare",
    "complete",
    "day_period",
    "disconnected",
    "estimate_utility",
    "experiments",
    "geo_ind",
    "get_num_threads",
    "isolated",
    "isolated_many",
    "iter_table",
    "neighbours8",
    "plot",
    "privacy",
    "read_foursquare",
    "read_geolife",
    "read_gowalla",
    "read_peopleflow_pois",
    "read_table",
    "repair",
    "repair_many",
    "report_table",
    "sensitivity_hull",
    "set_num_threads",
    "utility",
    "write_report",
]

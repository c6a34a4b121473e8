"""pglp_fast: private locations under Policy Graph based Location Privacy, exact, certified and fast.

>>> import pglp_fast as pf
>>> g = pf.Grid(30, 30, cell_km=0.5)
>>> m = pf.PPIM(pf.blocks(g, 3), epsilon=1.0)
>>> released = m.release([0, 31, 899])
>>> pf.certify(m).ok
True
"""

from . import plot
from ._version import __version__
from .certify import Certificate, certify
from .domain import Domain
from .errors import (
    BudgetExceeded,
    InvalidDomain,
    InvalidLocation,
    InvalidParameter,
    InvalidPolicy,
    InvalidState,
    InvalidTransition,
    PGLPError,
    TooLarge,
)
from .exposure import Exposure, Repair, Repairs, disconnected, isolated, isolated_many, repair, repair_many
from .locations import Grid, Points
from .mechanisms import PLM, PPIM, Mechanism
from .mobility import MobilityModel, day_period
from .policy import PolicyGraph, blocks, categories, complete, neighbours8
from .sensitivity import SensitivityHull, sensitivity_hull
from .stream import Stream, TraceResult
from .threads import get_num_threads, set_num_threads
from .traces import TraceReleaser

__all__ = [
    "PLM",
    "PPIM",
    "BudgetExceeded",
    "Certificate",
    "Domain",
    "Exposure",
    "Grid",
    "InvalidDomain",
    "InvalidLocation",
    "InvalidParameter",
    "InvalidPolicy",
    "InvalidState",
    "InvalidTransition",
    "Mechanism",
    "MobilityModel",
    "PGLPError",
    "Points",
    "PolicyGraph",
    "Repair",
    "Repairs",
    "SensitivityHull",
    "Stream",
    "TooLarge",
    "TraceReleaser",
    "TraceResult",
    "__version__",
    "blocks",
    "categories",
    "certify",
    "complete",
    "day_period",
    "disconnected",
    "get_num_threads",
    "isolated",
    "isolated_many",
    "neighbours8",
    "plot",
    "repair",
    "repair_many",
    "sensitivity_hull",
    "set_num_threads",
]

"""pglp_fast: private locations under Policy Graph based Location Privacy, fast."""

from .domain import Domain
from .errors import (
    BudgetExceeded,
    InvalidDomain,
    InvalidLocation,
    InvalidParameter,
    InvalidPolicy,
    InvalidTransition,
    PGLPError,
    TooLarge,
)
from .locations import Grid, Points
from .mechanisms import PLM, PPIM
from .policy import PolicyGraph, blocks, categories, complete, neighbours8
from .sensitivity import SensitivityHull, sensitivity_hull
from .threads import get_num_threads, set_num_threads

__version__ = "0.1.0"

"""Mechanisms: each answers one question, Pr(z|s) over the output set of a component shape."""

from .base import Mechanism
from .knorm import LM, PIM, PLM, PPIM, PlanarLaplace, geo_ind
from .optimal import Optimal
from .remapped import Remapped
from .response import KRR, GraphExponential

__all__ = [
    "KRR",
    "LM",
    "PIM",
    "PLM",
    "PPIM",
    "GraphExponential",
    "Mechanism",
    "Optimal",
    "PlanarLaplace",
    "Remapped",
    "geo_ind",
]

"""Mechanisms: each answers one question, Pr(z|s) over the output set of a component shape."""

from .base import Mechanism
from .knorm import PLM, PPIM
from .optimal import Optimal
from .response import KRR, GraphExponential

__all__ = ["KRR", "PLM", "PPIM", "GraphExponential", "Mechanism", "Optimal"]

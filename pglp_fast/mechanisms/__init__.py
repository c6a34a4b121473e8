"""Mechanisms: each answers one question, Pr(z|s) over the output set of a component shape."""

from .base import Mechanism
from .knorm import PLM, PPIM

__all__ = ["PLM", "PPIM", "Mechanism"]

"""How a mechanism answers for one component, whatever graph it is part of."""

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from ..components import Component
from ..errors import TooLarge

MAX_TABLE = 2048  # locations in a component for which a table, or ``matrix``, is made at all

ROW_SUM = 1e-9  # a table is refused whose exact rows are further off than this


class Recipe(ABC):
    """Pr(z|s) over the places of a component.

    Attributes
    ----------
    name : of the mechanism, for messages
    translates : whether components that are translates of each other get the same answer
    wants_hull : whether the component must come with its sensitivity hull
    largest : members of a component that it takes; ``instead`` says what to use beyond
    """

    name: str
    translates: bool = True
    wants_hull: bool = False
    largest: int = MAX_TABLE
    instead: str = "use PPIM, or a policy of smaller components"

    @abstractmethod
    def log_matrix(self, component: Component) -> NDArray[np.float64]:
        """ln Pr(place z | place s), (k, k)."""

    def describe(self) -> str:
        """What tells this recipe from others of its name, epsilon aside."""
        return ""

    def check_size(self, k: int) -> None:
        if k > self.largest:
            raise TooLarge(f"a component has {k} locations, {self.name} takes {self.largest}: {self.instead}")

"""What every mechanism is: something that answers Pr(z|s) for a policy, exactly, and releases accordingly."""

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _validate as check
from ..domain import Domain
from ..errors import InvalidDomain, TooLarge
from ..groups import Groups
from ..locations import Locations
from ..policy import PolicyGraph
from .recipe import MAX_TABLE


class Mechanism(ABC):
    """A mechanism that satisfies {epsilon, G^C}-location privacy (Definition 7).

    Attributes
    ----------
    graph : the policy, constrained to the domain
    epsilon : e^epsilon bounds the ratio of probabilities across an edge
    domain : C, what the adversary thinks possible; None for the whole map
    calibration : "component" or "graph"
    locations : the map
    groups : which locations share one output set, and which of those sets are translates of each other
    """

    graph: PolicyGraph
    epsilon: float
    domain: Domain | None
    calibration: str
    locations: Locations
    groups: Groups

    @abstractmethod
    def _log_rows(self, shape: int, sources: NDArray[np.int64]) -> NDArray[np.float64]:
        """ln Pr(z|s) for the given places s of a shape and every place z."""

    @abstractmethod
    def release(
        self, cells: ArrayLike, *, users: ArrayLike | None = None, t: ArrayLike = 0, rng: int | None = None
    ) -> check.Cells:
        """Release each cell privately.

        Parameters
        ----------
        cells : true locations: one, many or none
        users, t : number the draws; the draw for (key, user, t) is a pure function of the three, so results do not depend on
            batches, order or threads. ``users`` defaults to 0, 1, 2, ...; ``t`` is one number or one for each cell. No
            (user, t) may repeat.
        rng : None for a fresh key from the operating system at each call; an integer seed for reproducible research. A seeded
            release is not private against anyone who knows the seed.

        Returns
        -------
        Released cells, int32, in the shape of ``cells``.
        """

    @abstractmethod
    def table(self, s: int) -> tuple[check.Cells, NDArray[np.uint64]]:
        """(outputs, weights): the integers, of sum 2**63, that a release from s is drawn with."""

    def _check_inside(self, s: int) -> int:
        s = check.one_cell(s, self.locations.size)
        if self.groups.address[s, 0] < 0:
            raise InvalidDomain(
                f"location {s} is outside the domain of {len(self.groups.members)} locations: nothing can be released from it"
            )
        return s

    def matrix(self, s: int, *, log: bool = False) -> tuple[check.Cells, NDArray[np.float64]]:
        """Exact probabilities over the output set of s: ``P[i, j] = Pr(outputs[j] | outputs[i])``.

        ``log=True`` gives ln P, which also tells probabilities below 1e-308 apart. Rows of P sum to 1 within 1e-12.
        """
        s = self._check_inside(s)
        outputs = self.groups.of(s).copy()
        if len(outputs) > MAX_TABLE:
            raise TooLarge(
                f"the output set of {s} has {len(outputs)} locations, a matrix is made up to {MAX_TABLE}: "
                "ask for single rows with pmf(s)"
            )
        rows = self._log_rows(self.groups.shape(s), np.arange(len(outputs)))
        return outputs, rows if log else np.exp(rows)

    def pmf(self, s: int, *, log: bool = False) -> tuple[check.Cells, NDArray[np.float64]]:
        """(outputs, Pr(outputs | s)), exact."""
        s = self._check_inside(s)
        row = self._log_rows(self.groups.shape(s), self.groups.address[s, 1:].astype(np.int64))[0]
        return self.groups.of(s).copy(), row if log else np.exp(row)

    def _log_matrices(self, which: NDArray[np.int64]) -> NDArray[np.float64]:
        """ln Pr(z|s) of these shapes, each (k, k) row by row, end to end."""
        blocks = [self._log_rows(int(shape), np.arange(self.groups.sizes[shape])).reshape(-1) for shape in which]
        return np.concatenate(blocks) if blocks else np.empty(0)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.graph!r}, epsilon={self.epsilon}, calibration={self.calibration!r})"

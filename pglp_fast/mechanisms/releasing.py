"""The release of cells: checked, numbered, and handed to a mechanism's draw."""

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pglp_fast._kernels.noise.alias_tables import Requests, first_outside
from pglp_fast._util import validate as check
from pglp_fast.errors import InvalidDomain, InvalidLocation
from pglp_fast.policy.domain import Domain
from pglp_fast.policy.groups import Groups
from pglp_fast.space.locations import Locations

from .randomness import draw_counters, make_key


class Releasing:
    """What can be drawn from can be released from."""

    domain: Domain | None
    locations: Locations
    groups: Groups

    def release(
        self,
        cells: ArrayLike,
        *,
        users: ArrayLike | None = None,
        t: ArrayLike = 0,
        rng: int | None = None,
    ) -> check.Cells:
        """Release each cell privately.

        Parameters
        ----------
        cells : true locations: one, many or none; -1, as ``Grid.locate`` says "off the map",
            gives -1
        users, t : number the draws; the draw for (key, user, t) is a pure function of the three, so
            results do not depend on batches, order or threads. ``users`` defaults to 0, 1, 2, ...;
            ``t`` is one number or one for each cell. No (user, t) may repeat.
        rng : None for a fresh key from the operating system at each call; an integer seed for
            reproducible research. A seeded release is not private against anyone who knows the
            seed.

        Returns
        -------
        Released cells, int32, in the shape of ``cells``.
        """
        if users is None and type(cells) is int and type(t) is int:
            found = self._release_one(cells, t, rng)
            if found is not None:
                return found
        given = check.integers(cells, "cells", InvalidLocation)
        off = given.reshape(-1) == -1
        some_off = bool(off.any())
        true = check.cells(np.where(given == -1, 0, given) if some_off else given, self._size)
        flat = true.reshape(-1)
        who, times = draw_counters(users, t, flat.size)
        key, out = make_key(rng), np.empty(flat.size, check.CELL)
        first = int(off.argmin()) if some_off else 0
        if flat.size and not off[first]:
            if some_off:  # off the map, what another one draws is thrown away
                flat = np.where(off, flat[first], flat)
            self._check_domain(flat, off, first)
            self.draw(Requests(key, who, times, flat), out)
        if some_off:
            out[off] = -1
        return out.reshape(true.shape)[()]

    def _check_domain(self, cells: check.Cells, off: NDArray[np.bool_], first: int) -> None:
        """Refuse cells that the domain rules out; those ``off`` the map stand for the first."""
        if self.domain is None:
            return
        at = first_outside(cells, self._size, self.groups.address)
        if at >= 0:
            at = first if off[at] else at
            raise InvalidDomain(
                f"cells[{at}] = {cells[at]} is outside the domain: nothing can be released from a "
                "location that is ruled out"
            )

    def _release_one(self, cell: int, t: int, rng: int | None) -> Any:
        """A release of one cell in one call of a kernel, or None where ``release`` has to look at
        it: something is wrong, or the cell is not drawn from a table that is there."""
        if not (0 <= cell < self._size and 0 <= t < check.MAX_TIME):
            return None
        found = self.draw_one(make_key(rng), t, cell)
        return None if found < 0 else check.CELL(found)

    @property
    def _size(self) -> int:
        return self.locations.size

    @abstractmethod
    def draw(self, requests: Requests, out: check.Cells) -> None:
        """Write the released cell of every request."""

    @abstractmethod
    def draw_one(self, key: NDArray[np.uint32], t: int, cell: int) -> int:
        """What ``draw`` gives for user 0; -1 where only ``draw`` can tell."""

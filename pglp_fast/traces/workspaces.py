"""What threads work with: all that users share, bound for kernels, with work space of their own."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pglp_fast._kernels.base.bound_arrays import Bound, bind
from pglp_fast._kernels.trace import records


class Worlds:
    """Worlds that nobody uses at the moment; more are made when there is none.

    Parameters
    ----------
    make : callable
        Makes a ``World``, whose work space is as large as the map.
    """

    def __init__(self, make: Callable[[], records.World]):
        self._make, self._spare = make, list[Bound]()

    def __getstate__(self) -> dict[str, Any]:
        """Each process makes its own."""
        return {"_make": self._make, "_spare": []}

    def take(self) -> Bound:
        """One for one thread: the one that was given back last, which remembers most."""
        try:
            return self._spare.pop()
        except IndexError:
            return bind(self._make())

    def give_back(self, world: Bound) -> None:
        """Keep it for the next step."""
        self._spare.append(world)

    @contextmanager
    def one(self) -> Iterator[Bound]:
        """One for a while. What fails leaves its work space as it is, for it may not be clean."""
        world = self.take()
        yield world
        self.give_back(world)

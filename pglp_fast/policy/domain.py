"""The constrained domain C: the locations that the adversary thinks possible, as a bitmask."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pglp_fast._kernels.base import bits
from pglp_fast._util import validate as check
from pglp_fast.errors import InvalidDomain, PGLPError
from pglp_fast.space.locations import Locations, require_locations, require_same_map


class Domain:
    """A set of locations. ``words[i >> 6]`` has bit ``i & 63`` set for each location i in it.

    Domains are values: operations give new ones, and ``words`` is read-only.
    """

    def __init__(self, locations: Locations, cells: ArrayLike):
        words = np.zeros(_n_words(locations), np.uint64)
        bits.set_cells(words, check.cells(cells, locations.size, error=InvalidDomain).reshape(-1))
        self._adopt(locations, words)

    def _adopt(self, locations: Locations, words: NDArray[np.uint64]) -> None:
        words.flags.writeable = False
        self.locations, self.words = locations, words

    @classmethod
    def _of(cls, locations: Locations, words: NDArray[np.uint64]) -> "Domain":
        out = cls.__new__(cls)
        out._adopt(locations, words)
        return out

    @classmethod
    def full(cls, locations: Locations) -> "Domain":
        """Every location."""
        words = np.full(_n_words(locations), ~np.uint64(0))
        words[-1] >>= np.uint64(-locations.size % 64)
        return cls._of(locations, words)

    @classmethod
    def from_mask(cls, locations: Locations, mask: ArrayLike) -> "Domain":
        """From one boolean for each location (any shape of that size, e.g. (rows, cols))."""
        n_words = _n_words(locations)
        array = check.as_array(mask, "mask", InvalidDomain)
        if array.dtype != bool or array.size != locations.size:
            raise InvalidDomain(
                f"mask must be {locations.size} booleans, one for each location, got {array.size} "
                f"of dtype {array.dtype}"
            )
        packed = np.zeros(n_words * 8, np.uint8)
        octets = np.packbits(array.reshape(-1), bitorder="little")
        packed[: octets.size] = octets
        return cls._of(locations, packed.view("<u8").astype(np.uint64))

    def cells(self) -> check.Cells:
        """The locations in the domain, ascending."""
        out = np.empty(len(self), check.CELL)
        bits.list_cells(self.words, out)
        return out

    def mask(self) -> NDArray[np.bool_]:
        """One boolean for each location."""
        octets = self.words.astype("<u8").view(np.uint8)
        return np.unpackbits(octets, count=self.locations.size, bitorder="little").view(bool)

    def __len__(self) -> int:
        return int(bits.popcount(self.words))

    def __iter__(self) -> Iterator[int]:
        return iter(self.cells().tolist())

    def __contains__(self, cell: Any) -> bool:
        try:
            return bool(bits.test1(self.words, check.one_cell(cell, self.locations.size)))
        except PGLPError:
            return False

    def contains(self, cells: ArrayLike) -> NDArray[np.bool_]:
        """Whether each of the cells is in the domain."""
        array = check.cells(cells, self.locations.size, error=InvalidDomain)
        out = np.empty(array.size, bool)
        bits.test_cells(self.words, array.reshape(-1), out)
        return out.reshape(array.shape)

    def _other(self, other: "Domain") -> NDArray[np.uint64]:
        require_domain(other)
        require_same_map(self.locations, other.locations, "the domains", InvalidDomain)
        return other.words

    def __and__(self, other: "Domain") -> "Domain":
        return self._of(self.locations, self.words & self._other(other))

    def __or__(self, other: "Domain") -> "Domain":
        return self._of(self.locations, self.words | self._other(other))

    def __sub__(self, other: "Domain") -> "Domain":
        return self._of(self.locations, self.words & ~self._other(other))

    def __invert__(self) -> "Domain":
        return self._of(self.locations, ~self.words & self.full(self.locations).words)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Domain) or not self.locations.same_map(other.locations):
            return False
        return bool((self.words == other.words).all())

    def __hash__(self) -> int:
        return hash(self.words.tobytes())

    def __repr__(self) -> str:
        return f"Domain({len(self)} of {self.locations.size} locations)"


def _n_words(locations: Locations) -> int:
    return -(-require_locations(locations).size // 64)


def require_domain(value: Any) -> Domain:
    """Refuse what is not a domain."""
    how = "make one with pf.Domain(locations, cells)"
    return check.instance(value, Domain, "domain must be a Domain", how, InvalidDomain)

"""The policies of a releaser, by name, over one map."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pglp_fast._kernels.trace.choices import Policies
from pglp_fast._kernels.trace.records import words_for
from pglp_fast._util import validate as check
from pglp_fast._util.arrays import starts_of
from pglp_fast.errors import InvalidPolicy
from pglp_fast.policy.graph import PolicyGraph, require_policy
from pglp_fast.policy.kernel_arrays import kernel_policy
from pglp_fast.space.locations import Locations, require_same_map

DEFAULT = "default"


class PolicySet:
    """Policies by name and by number, and intersections of them.

    Attributes
    ----------
    names : tuple of str
    graphs : tuple of PolicyGraph
    default : int
        Number of the policy that holds unless told: that of the name "default", or the first.
    """

    def __init__(self, graphs: tuple[PolicyGraph, ...], names: tuple[str, ...] | None = None):
        self.graphs = graphs
        self.names = (DEFAULT, *(f"policy {k}" for k in range(1, len(graphs))))
        if names is not None:
            self.names = names
        self.default = self.names.index(DEFAULT) if DEFAULT in self.names else 0
        self._common: dict[bytes, PolicyGraph] = {}

    @classmethod
    def of(cls, policies: Any) -> "PolicySet":
        """One policy, or a mapping from names to policies over one map."""
        if not isinstance(policies, Mapping):
            return cls((require_policy(policies),))
        if not policies:
            raise InvalidPolicy("there is no policy in the mapping: give {'default': G, ...}")
        odd = [name for name in policies if not isinstance(name, str) or not name]
        if odd:
            raise InvalidPolicy(f"policies go by name, got {check.brief(odd[0])}: use a string")
        graphs = tuple(require_policy(graph) for graph in policies.values())
        for name, graph in policies.items():
            require_same_map(
                graph.locations, graphs[0].locations,
                f"policy {name!r} and policy {next(iter(policies))!r}", InvalidPolicy,
            )  # fmt: skip
        return cls(graphs, tuple(policies))

    def __len__(self) -> int:
        return len(self.graphs)

    @property
    def locations(self) -> Locations:
        return self.graphs[0].locations

    @property
    def graph(self) -> PolicyGraph:
        """The policy that holds unless told."""
        return self.graphs[self.default]

    @property
    def n_cliques(self) -> int:
        """Of the policy that has most."""
        return max(graph.n_cliques for graph in self.graphs)

    @property
    def weighted(self) -> bool:
        """Whether a policy has edges with weights."""
        return any(graph.weights is not None for graph in self.graphs)

    def number(self, name: Any) -> int:
        """The number of a policy."""
        if name not in self.names:
            raise InvalidPolicy(
                f"there is no policy {check.brief(name)}: there are {', '.join(self.names)}"
            )
        return self.names.index(name)

    def stacked(self) -> Policies:
        """As kernels take them."""
        parts = [kernel_policy(graph) for graph in self.graphs]
        offsets = starts_of(np.array([len(p.indices) for p in parts]))
        extents = [p.extent.reshape(-1, 2) for p in parts]
        # policies of one denominator share their coordinates
        distinct, lattice_of = np.unique([g.denominator for g in self.graphs], return_inverse=True)
        lattices = [parts[int(np.argmax(lattice_of == k))].lattice for k in range(len(distinct))]
        weights = np.concatenate([p.weights for p in parts])
        if len(weights):  # entries are numbered across all policies
            weights = np.concatenate(
                [p.weights if p.denominator else np.ones((len(p.indices), 2), int) for p in parts]
            )
        sizes = np.array([(p.widest, p.tallest, p.rows, p.cols, p.denominator) for p in parts])
        widest, tallest, rows, cols, denominator = np.ascontiguousarray(sizes.T)
        return Policies(
            np.stack(lattices) if len(lattices) > 1 else lattices[0][None],
            lattice_of.reshape(-1),
            np.stack([p.cliques for p in parts]),
            np.concatenate(extents),
            starts_of(np.array([len(extent) for extent in extents])),
            widest,
            tallest,
            np.stack([p.indptr + at for p, at in zip(parts, offsets[:-1], strict=True)]),
            np.concatenate([p.indices for p in parts]),
            rows,
            cols,
            np.array([p.dx for p in parts]),
            np.array([p.dy for p in parts]),
            parts[0].stretch,
            weights,
            denominator,
        )

    def words(self, numbers: list[int]) -> NDArray[np.uint64]:
        """The bitmask of some policies."""
        out = np.zeros(words_for(len(self)), np.uint64)
        for k in numbers:
            out[k >> 6] |= np.uint64(1) << np.uint64(k & 63)
        return out

    def members(self, words: NDArray[np.uint64]) -> list[int]:
        """The policies of a bitmask."""
        bits = np.unpackbits(words.astype("<u8").view(np.uint8), bitorder="little")
        return [int(k) for k in np.flatnonzero(bits[: len(self)])]

    def common(self, words: NDArray[np.uint64]) -> PolicyGraph:
        """The edges that all policies of a bitmask have; the default where it is empty."""
        key = words.tobytes()
        if key not in self._common:
            some = [self.graphs[k] for k in self.members(words)] or [self.graph]
            out = some[0]
            for graph in some[1:]:
                out = out & graph
            self._common[key] = out
        return self._common[key]

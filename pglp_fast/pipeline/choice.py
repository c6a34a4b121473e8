"""Policy and epsilon of rows, as numbers."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Choice(NamedTuple):
    """Number of the policy, -1 where there is none, and epsilon, of some rows or events."""

    policy: NDArray[np.int16]
    epsilon: NDArray[np.float64]

    def take(self, some: Any) -> "Choice":
        return Choice(self.policy[some], self.epsilon[some])

    @classmethod
    def none(cls, n: int) -> "Choice":
        return cls(np.full(n, -1, np.int16), np.full(n, np.nan))

    @classmethod
    def joined(cls, parts: "list[Choice]") -> "Choice":
        return cls(*(np.concatenate(c) for c in zip(cls.none(0), *parts, strict=True)))

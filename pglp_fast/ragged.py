"""Rows of different lengths, laid end to end."""

import numpy as np
from numpy.typing import NDArray


def starts_of(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each row starts, and where the last one ends."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])

"""Sums of probabilities that are given by their logarithms.

ln sum_k exp(a_k) = a_max + ln sum_k exp(a_k - a_max) neither overflows nor loses all of its
terms to underflow."""

import numpy as np

from .jit import kernel


@kernel
def log_add(a, b):
    """ln(e^a + e^b); either may be -inf."""
    high, low = max(a, b), min(a, b)
    return high + np.log1p(np.exp(low - high)) if low > -np.inf else high


@kernel
def normalise(logs):
    """Subtract ln sum exp(logs) in place, and return it."""
    top = logs.max()
    total = 0.0
    for k in range(logs.shape[0]):
        total += np.exp(logs[k] - top)
    shift = top + np.log(total)
    for k in range(logs.shape[0]):
        logs[k] -= shift
    return shift


@kernel
def exponentials(logs, p):
    """p[k] = exp(logs[k] - max(logs)); returns that maximum."""
    top = logs.max()
    for k in range(logs.shape[0]):
        p[k] = np.exp(logs[k] - top)
    return top


@kernel
def softmax(values):
    """values = exp(values) / sum exp(values), in place; returns ln sum exp(values)."""
    top = exponentials(values, values)
    total = 0.0
    for k in range(values.shape[0]):
        total += values[k]
    for k in range(values.shape[0]):
        values[k] /= total
    return top + np.log(total)

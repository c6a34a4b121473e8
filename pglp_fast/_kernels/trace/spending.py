"""Sums of epsilon by user, to the last bit, and over windows of steps.

A sum is kept as two floats (Knuth's TwoSum): it does not depend on the order of what is added, but
for errors of 2**-100. Ten times 0.1 is 1."""

from pglp_fast._kernels.base.jit import kernel


@kernel
def add(high, low, value):
    """(high, low) + value."""
    total = high + value
    back = total - high
    low += (high - (total - back)) + (value - back)
    high = total + low
    return high, low - (high - total)


@kernel
def add_events(start, epsilons, high, low):
    """Add the events start[u] .. start[u + 1] - 1 of every user to high[u] + low[u], in place."""
    for u in range(high.shape[0]):
        for e in range(start[u], start[u + 1]):
            high[u], low[u] = add(high[u], low[u], epsilons[e])


@kernel
def first_over(start, steps, epsilons, fresh, window, limit, forgotten, since):
    """(user, event) of the first window that ends at an event, has a fresh one in it, and a sum
    above the limit; (-1, -1) if there is none.

    Events of a user ascend by step. ``forgotten[u]`` was spent at unknown steps below since[u]: it
    counts in every window that reaches below that."""
    for u in range(start.shape[0] - 1):
        first, count, high, low = start[u], 0, 0.0, 0.0
        for e in range(start[u], start[u + 1]):
            high, low = add(high, low, epsilons[e])
            count += fresh[e]
            while steps[first] <= steps[e] - window:
                high, low = add(high, low, -epsilons[first])
                count -= fresh[first]
                first += 1
            total = high + low
            if since[u] - 1 > steps[e] - window:
                total += forgotten[u]
            if count > 0 and total > limit:
                return u, e
    return -1, -1

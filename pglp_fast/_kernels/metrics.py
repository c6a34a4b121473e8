"""How far off a release is: expected errors from probabilities, and errors of samples."""

import math

import numpy as np

from .jit import kernel


@kernel
def kilometres(lattice, s, z, dx, dy):
    """Euclidean distance between two locations."""
    return math.hypot(
        (np.int64(lattice[s, 0]) - np.int64(lattice[z, 0])) * dx, (np.int64(lattice[s, 1]) - np.int64(lattice[z, 1])) * dy
    )


@kernel
def add_by_place(members, starts, shape_of, places, weight, out):
    """out[place] += the weight of every location at this place; the places of a shape are numbered from ``places[shape]`` on."""
    for g in range(shape_of.shape[0]):
        first = places[shape_of[g]] - starts[g]
        for k in range(starts[g], starts[g + 1]):
            out[first + k] += weight[members[k]]


@kernel
def spread_by_place(members, starts, shape_of, places, value, out):
    """out[s] = the value of the place of s."""
    for g in range(shape_of.shape[0]):
        first = places[shape_of[g]] - starts[g]
        for k in range(starts[g], starts[g + 1]):
            out[members[k]] = value[first + k]


@kernel
def shape_errors(
    first, last, members, starts, representative, lattice, dx, dy, places, weight, at, logs, mean, largest, columns, value, mass
):
    """Distances of the shapes first..last-1, by place of the true location.

    ``logs`` holds ln Pr(z|s), that of a shape row by row from ``at[shape - first]`` on; ``columns`` gets Pr(z|s), column by
    column. mean[i] is the expected distance from place i, largest[i] the largest with a probability above 0 (in the logarithm:
    below 1e-308 is not zero). value, mass: each distance, and weight[i] Pr(z|s).
    """
    for shape in range(first, last):
        a = starts[representative[shape]]
        k = starts[representative[shape] + 1] - a
        e = at[shape - first]
        for i in range(k):
            place = places[shape] + i
            total, most = 0.0, 0.0
            for j in range(k):
                d = kilometres(lattice, members[a + i], members[a + j], dx, dy)
                log = logs[e + i * k + j]
                if log > -np.inf:
                    most = max(most, d)
                p = math.exp(log)
                columns[e + j * k + i] = p
                total += p * d
                value[e + i * k + j], mass[e + i * k + j] = d, weight[place] * p
            mean[place], largest[place] = total, most


@kernel
def label_errors(groups, start, stop, first, members, starts, shape_of, at, columns, labels, out):
    """out[s] = Pr(the label of what is released differs from that of s), for every s of the groups ``groups[start:stop]``.

    ``columns`` holds the matrices of the shapes from ``first`` on, as ``shape_errors`` leaves them: the inner loop goes over true
    locations, whose sums are independent, so that it runs in vector instructions.
    """
    widest = 1
    for g in groups[start:stop]:
        widest = max(widest, starts[g + 1] - starts[g])
    label, total = np.empty(widest, np.int64), np.empty(widest)
    for g in groups[start:stop]:
        a, k = starts[g], starts[g + 1] - starts[g]
        alike = True
        for j in range(k):
            label[j], total[j] = labels[members[a + j]], 0.0
            alike = alike and label[j] == label[0]
        if not alike:
            e = at[shape_of[g] - first]
            for j in range(k):
                column, released = columns[e + j * k : e + j * k + k], label[j]
                for i in range(k):
                    total[i] += column[i] if label[i] != released else 0.0
        for j in range(k):
            out[members[a + j]] = min(total[j], 1.0)  # rows sum to 1 only within rounding


@kernel
def sample_errors(true, released, start, stop, lattice, dx, dy, regions, categories, distance, other_region, other_category):
    """Errors of the pairs start..stop-1. A distance of -1 marks a pair with a cell missing (-1).

    An empty ``regions`` or ``categories`` asks for none.
    """
    for i in range(start, stop):
        s, z = true[i], released[i]
        if s < 0 or z < 0:
            distance[i] = -1.0
            continue
        distance[i] = kilometres(lattice, s, z, dx, dy)
        if regions.shape[0] > 0:
            other_region[i] = regions[s] != regions[z]
        if categories.shape[0] > 0:
            other_category[i] = categories[s] != categories[z]

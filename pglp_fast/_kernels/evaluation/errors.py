"""How far off a release is: expected errors from probabilities, and errors of samples."""

import math
from collections import namedtuple

import numpy as np

from pglp_fast._kernels.base.jit import kernel
from pglp_fast._kernels.base.lattice import difference
from pglp_fast._kernels.policy.shapes import members_of

# Every place of every shape, those of a shape from starts[shape] on: the prior's weight of the
# locations at this place; their mean distance, and the largest with a probability above 0.
Places = namedtuple("Places", "starts weight mean largest")

# Every pair (s, z) of places of some shapes, that of the first shape first, row by row from
# at[0] on: ln Pr(z|s); Pr(z|s) column by column; the distance in km; prior times Pr(z|s).
Pairs = namedtuple("Pairs", "at logs columns distance mass")

# Samples: true and released cells; their distance, -1 where a cell is missing; and whether they
# differ in region and in category.
Samples = namedtuple("Samples", "true released distance other")


@kernel
def kilometres(lattice, s, z, dx, dy):
    """Euclidean distance between two locations."""
    x, y = difference(lattice, z, s)
    return math.hypot(x * dx, y * dy)


@kernel
def add_by_place(groups, starts, weight, out):
    """out[place] += the weight of every location at this place."""
    for g in range(groups.shape_of.shape[0]):
        first = starts[groups.shape_of[g]] - groups.starts[g]
        for k in range(groups.starts[g], groups.starts[g + 1]):
            out[first + k] += weight[groups.members[k]]


@kernel
def spread_by_place(groups, starts, value, out):
    """out[s] = the value of the place of s."""
    for g in range(groups.shape_of.shape[0]):
        first = starts[groups.shape_of[g]] - groups.starts[g]
        for k in range(groups.starts[g], groups.starts[g + 1]):
            out[groups.members[k]] = value[first + k]


@kernel
def _place_errors(i, members, lattice, dx, dy, weight, entry, pairs):
    """(mean, largest) distance from place i, the pairs of the shape from ``entry`` on.

    An output is possible if its probability is above 0 in the logarithm: below 1e-308 is not zero.
    """
    k = members.shape[0]
    mean, largest = 0.0, 0.0
    for j in range(k):
        d = kilometres(lattice, members[i], members[j], dx, dy)
        log = pairs.logs[entry + i * k + j]
        if log > -np.inf:
            largest = max(largest, d)
        p = math.exp(log)
        mean += p * d
        pairs.columns[entry + j * k + i] = p
        pairs.distance[entry + i * k + j], pairs.mass[entry + i * k + j] = d, weight * p
    return mean, largest


@kernel
def shape_errors(first, last, groups, dx, dy, places, pairs):
    """Distances of the shapes first..last-1, by place of the true location: E_eu and its parts.

    ``pairs`` are those of these shapes, ``pairs.at[0]`` of the first: ``logs`` is read, the rest
    is written, and so are ``places.mean`` and ``places.largest``."""
    for shape in range(first, last):
        members = members_of(groups, shape)
        entry = pairs.at[shape - first]
        for i in range(members.shape[0]):
            at = places.starts[shape] + i
            places.mean[at], places.largest[at] = _place_errors(
                i, members, groups.lattice, dx, dy, places.weight[at], entry, pairs
            )


@kernel
def label_errors(which, start, stop, first, groups, pairs, labels, out):
    """out[s] = Pr(the label of what is released differs from that of s), for the locations s of
    groups ``which[start:stop]``.

    ``pairs`` are those of the shapes from ``first`` on, as ``shape_errors`` leaves them: the inner
    loop goes over true locations, whose sums are independent, so that it runs in vector
    instructions."""
    members, starts = groups.members, groups.starts
    widest = 1
    for g in which[start:stop]:
        widest = max(widest, starts[g + 1] - starts[g])
    label, total = np.empty(widest, np.int64), np.empty(widest)
    for g in which[start:stop]:
        a, k = starts[g], starts[g + 1] - starts[g]
        alike = True
        for j in range(k):
            label[j], total[j] = labels[members[a + j]], 0.0
            alike = alike and label[j] == label[0]
        if not alike:
            e = pairs.at[groups.shape_of[g] - first]
            for j in range(k):
                column, released = pairs.columns[e + j * k : e + j * k + k], label[j]
                for i in range(k):
                    total[i] += column[i] if label[i] != released else 0.0
        for j in range(k):
            out[members[a + j]] = min(total[j], 1.0)  # rows sum to 1 only within rounding


@kernel
def sample_errors(samples, start, stop, lattice, dx, dy, labels):
    """Errors of the pairs start..stop-1; ``labels`` are (regions, categories), empty for none."""
    regions, categories = labels
    other_region, other_category = samples.other
    for i in range(start, stop):
        s, z = samples.true[i], samples.released[i]
        if s < 0 or z < 0:
            samples.distance[i] = -1.0
            continue
        samples.distance[i] = kilometres(lattice, s, z, dx, dy)
        if regions.shape[0] > 0:
            other_region[i] = regions[s] != regions[z]
        if categories.shape[0] > 0:
            other_category[i] = categories[s] != categories[z]

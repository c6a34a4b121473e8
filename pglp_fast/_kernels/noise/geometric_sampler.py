"""The geometric sampler: continuous K-norm noise, snapped to the nearest location of the group.

A location's address is (group, place in the group); a group has a shape, and the shape tells how it
is sampled. Locations whose shape has a table are left alone."""

from collections import namedtuple

import numpy as np

from pglp_fast._kernels.base.chacha import CHUNK, GEOMETRIC, LANES, draw
from pglp_fast._kernels.base.jit import kernel
from pglp_fast._kernels.base.lattice import difference
from pglp_fast._kernels.geometry.kdtree import (
    ALONG_A_LINE,
    DEPTH,
    ROUNDING,
    build_tree,
    nearest_site,
    round_down,
)
from pglp_fast._kernels.geometry.polygons import polygon_of
from pglp_fast._kernels.policy.shapes import members_of, sites_of

from .cones import noise

# Search trees of shapes: sites and their order from starts[shape] on, boxes from
# box_starts[shape] on (see ``kdtree``). A shape whose sites fill a box of a grid needs none.
SiteTrees = namedtuple("SiteTrees", "starts sites order box_starts boxes")

# What the sampler knows of each shape: its noise polygon, the alias row of that polygon's cones,
# the extent of its sites (min col, max col, min row, max row) as offsets from the first member, and
# their search tree. ``columns``: of the grid, or 0 for scattered points.
Geometry = namedtuple("Geometry", "epsilon columns stretch polygons cones extents trees")


@kernel
def extents(which, groups, out):
    """Extent of each shape's sites, as offsets from the first member."""
    for shape in which:
        members = members_of(groups, shape)
        out[shape] = 0
        for i in members:
            x, y = difference(groups.lattice, members[0], i)
            out[shape, 0], out[shape, 1] = min(out[shape, 0], x), max(out[shape, 1], x)
            out[shape, 2], out[shape, 3] = min(out[shape, 2], y), max(out[shape, 3], y)


@kernel
def fill_trees(which, groups, stretch, trees):
    """Search trees of the sites of each shape in ``which`` that has room for one."""
    for shape in which:
        a, b = trees.starts[shape], trees.starts[shape + 1]
        if a < b:
            trees.sites[a:b] = sites_of(members_of(groups, shape), groups.lattice)
            trees.order[a:b] = np.arange(b - a)
            boxes = trees.boxes[trees.box_starts[shape] : trees.box_starts[shape + 1]]
            build_tree(trees.sites[a:b], stretch, trees.order[a:b], boxes)


@kernel
def _clamped(x, y, ax, ay, extent, columns):
    """The cell nearest to (x, y) in the box of a grid that a group at (ax, ay) spans."""
    west, east = np.float64(extent[0] + ax), np.float64(extent[1] + ax)
    south, north = np.float64(extent[2] + ay), np.float64(extent[3] + ay)
    col = np.int64(min(max(round_down(x), west), east))
    row = np.int64(min(max(round_down(y), south), north))
    return row * columns + col


@kernel
def _nearest_place(x, y, trees, shape, stretch, stack, tie):
    """The place of a shape nearest to (x, y), which is relative to its first member."""
    a, b = trees.starts[shape], trees.starts[shape + 1]
    boxes = trees.boxes[trees.box_starts[shape] : trees.box_starts[shape + 1]]
    return nearest_site(trees.sites[a:b], trees.order[a:b], boxes, stretch, x, y, stack, tie)


@kernel
def release_geometric(requests, start, stop, groups, tables, geometry, out):
    """Release requests start..stop-1, but for those whose shape has a table.

    On a grid the clamped cell is tried first: it is the answer unless the shape has a hole there.
    One loop with few calls: named tuples are handed to a function by value, at every release."""
    counters, scratch = np.empty((4, LANES), np.uint32), np.empty((16, LANES), np.uint32)
    words, stack = np.empty((CHUNK, 4), np.uint64), np.empty((DEPTH, 3), np.int64)
    key, users, times = requests.key, requests.users, requests.times
    lattice, address, cones = groups.lattice, groups.address, geometry.cones
    for begin in range(start, stop, CHUNK):
        end = min(begin + CHUNK, stop)
        draw(key, users, times, begin, end, 2, GEOMETRIC, counters, scratch, words)
        for i in range(begin, end):
            cell = requests.cells[i]
            group = address[cell, 0]
            shape = groups.shape_of[group]
            if tables.offset[shape] >= 0:
                continue
            polygon = polygon_of(geometry.polygons, shape)
            if polygon.shape[0] == 1:
                out[i] = cell
                continue
            at, bits = cones.offset[shape], cones.bits[shape]
            dx, dy = noise(
                words[i - begin], polygon, cones.cut, cones.alias, at, bits, geometry.epsilon
            )
            first = groups.starts[group]
            ax, ay = lattice[groups.members[first], 0], lattice[groups.members[first], 1]
            sx, sy = lattice[cell, 0], lattice[cell, 1]
            if geometry.columns > 0:
                found = _clamped(
                    sx + dx, sy + dy, ax, ay, geometry.extents[shape], geometry.columns
                )
                if address[found, 0] == group:
                    out[i] = found
                    continue
            x, y = sx - ax + dx, sy - ay + dy
            tie = ALONG_A_LINE if polygon.shape[0] == 2 else ROUNDING
            place = _nearest_place(x, y, geometry.trees, shape, geometry.stretch, stack, tie)
            out[i] = groups.members[first + place]


@kernel
def release_onto_map(requests, start, stop, groups, geometry, out):
    """Release requests start..stop-1 by the noise of their own group, snapped to the whole map.

    ``extents`` and ``trees`` of the geometry are of one shape, the map's, whose first member is
    location 0. On a grid the clamped cell is the answer: the map is a box."""
    counters, scratch = np.empty((4, LANES), np.uint32), np.empty((16, LANES), np.uint32)
    words, stack = np.empty((CHUNK, 4), np.uint64), np.empty((DEPTH, 3), np.int64)
    key, users, times = requests.key, requests.users, requests.times
    lattice, cones, extent = groups.lattice, geometry.cones, geometry.extents[0]
    ax, ay = np.int64(lattice[0, 0]), np.int64(lattice[0, 1])
    for begin in range(start, stop, CHUNK):
        end = min(begin + CHUNK, stop)
        draw(key, users, times, begin, end, 2, GEOMETRIC, counters, scratch, words)
        for i in range(begin, end):
            cell = requests.cells[i]
            shape = groups.shape_of[groups.address[cell, 0]]
            polygon = polygon_of(geometry.polygons, shape)
            if polygon.shape[0] == 1:
                out[i] = cell
                continue
            at, bits = cones.offset[shape], cones.bits[shape]
            dx, dy = noise(
                words[i - begin], polygon, cones.cut, cones.alias, at, bits, geometry.epsilon
            )
            sx, sy = lattice[cell, 0], lattice[cell, 1]
            if geometry.columns > 0:
                out[i] = _clamped(sx + dx, sy + dy, ax, ay, extent, geometry.columns)
                continue
            x, y = sx - ax + dx, sy - ay + dy
            tie = ALONG_A_LINE if polygon.shape[0] == 2 else ROUNDING
            out[i] = _nearest_place(x, y, geometry.trees, 0, geometry.stretch, stack, tie)

"""The guess of least expected distance: argmin over x of f(x) = sum_k w_k d(x, s_k), in km.

f is convex, so the plane through any x with a subgradient g for its slope lies below f everywhere:
f(y) >= f(x) + g (y - x). Everything a plane lifts above the best value so far is out. What is left
is never judged by anything but its own f: the answer is exact. Values that agree to 12 digits count
as equal; ties go to the lower index."""

from collections import namedtuple

import numpy as np

from pglp_fast._kernels.base.jit import kernel

TIE = 1e-12
_ROUNDING = 1e-14  # what a plane may be off by, of the terms it is the sum of
# boxes waiting: three more a level, at most three levels for each of some 60 halvings of two sides
STACK = 1024

# where the mass is, on the lattice, and how much (n of each are in use); km a lattice step; columns
# of the grid, 0 for scattered points
Mass = namedtuple("Mass", "cells x y w dx dy cols")


@kernel
def expected_distance(mass, n, x, y):
    """f at a lattice point."""
    total = 0.0
    for k in range(n):
        a, b = (x - mass.x[k]) * mass.dx, (y - mass.y[k]) * mass.dy
        total += mass.w[k] * np.sqrt(a * a + b * b)
    return total


@kernel
def _tangent(mass, n, x, y):
    """(f, its slope along x, along y) at a lattice point, per lattice step.

    A point of the mass itself contributes no slope."""
    f = gx = gy = 0.0
    for k in range(n):
        a, b = (x - mass.x[k]) * mass.dx, (y - mass.y[k]) * mass.dy
        d = np.sqrt(a * a + b * b)
        f += mass.w[k] * d
        pull = mass.w[k] / max(d, 1e-300)
        gx += pull * a
        gy += pull * b
    return f, gx * mass.dx, gy * mass.dy


@kernel
def _lowest_over(f, gx, gy, x, y, x0, x1, y0, y1):
    """What a tangent promises at least for a box of lattice points, rounding allowed for."""
    across, along = min(gx * (x0 - x), gx * (x1 - x)), min(gy * (y0 - y), gy * (y1 - y))
    return f + across + along - _ROUNDING * (f + abs(across) + abs(along))


@kernel
def _better(f, cell, low, guess):
    """(lowest value, guess) with one more candidate."""
    if f < low * (1.0 - TIE):
        return f, cell
    if f <= low * (1.0 + TIE):
        return min(f, low), min(cell, guess)
    return low, guess


@kernel
def _push_box(boxes, bounds, waiting, x0, x1, y0, y1, level, bound):
    """Put a box of cells on the stack; returns how many wait there."""
    box = boxes[waiting]
    box[0], box[1], box[2], box[3], box[4] = x0, x1, y0, y1, level
    bounds[waiting] = bound
    return waiting + 1


@kernel
def guess_on_grid(mass, n, boxes, bounds):
    """(cell, f) over all cells of the grid.

    The answer lies in the mass's bounding box: projecting onto a box brings x strictly nearer to
    everything in it. The box is searched by branch and bound. Two levels look at the box's cell
    nearest to the best so far, where a tangent that leans outward rules out the whole box; every
    third looks at its middle, which halves it whatever the shape of f."""
    x0 = x1 = np.int64(mass.x[0])
    y0 = y1 = np.int64(mass.y[0])
    mx = my = total = 0.0
    for k in range(n):
        x0, x1 = min(x0, np.int64(mass.x[k])), max(x1, np.int64(mass.x[k]))
        y0, y1 = min(y0, np.int64(mass.y[k])), max(y1, np.int64(mass.y[k]))
        mx += mass.w[k] * mass.x[k]
        my += mass.w[k] * mass.y[k]
        total += mass.w[k]
    if x0 == x1 and y0 == y1:
        return y0 * mass.cols + x0, 0.0
    bx, by = np.int64(np.rint(mx / total)), np.int64(np.rint(my / total))
    low, guess = np.inf, np.int64(-1)
    waiting = _push_box(boxes, bounds, 0, x0, x1, y0, y1, 0, 0.0)
    while waiting > 0:
        waiting -= 1
        if bounds[waiting] > low * (1.0 + TIE):
            continue
        box = boxes[waiting]
        x0, x1, y0, y1, level = box[0], box[1], box[2], box[3], box[4]
        if level % 3 < 2:
            x, y = min(max(bx, x0), x1), min(max(by, y0), y1)
        else:
            x, y = (x0 + x1) >> 1, (y0 + y1) >> 1
        f, gx, gy = _tangent(mass, n, x, y)
        if f < low:
            bx, by = x, y
        low, guess = _better(f, y * mass.cols + x, low, guess)
        limit = low * (1.0 + TIE)
        if _lowest_over(f, gx, gy, x, y, x0, x1, y0, y1) > limit:
            continue
        # all cells of the box but this one, in four boxes
        if (x1 - x0) * mass.dx >= (y1 - y0) * mass.dy:
            parts = ((x0, x - 1, y0, y1), (x + 1, x1, y0, y1), (x, x, y0, y - 1), (x, x, y + 1, y1))
        else:
            parts = ((x0, x1, y0, y - 1), (x0, x1, y + 1, y1), (x0, x - 1, y, y), (x + 1, x1, y, y))
        for a, b, c, d in parts:
            if a <= b and c <= d:
                bound = _lowest_over(f, gx, gy, x, y, a, b, c, d)
                if bound <= limit:
                    waiting = _push_box(boxes, bounds, waiting, a, b, c, d, level + 1, bound)
    return guess, low


@kernel
def guess_in_support(mass, n, bounds):
    """(location, f) over the locations of the mass.

    Next is always the one that all tangents so far promise most for."""
    at = 0
    for k in range(n):
        bounds[k] = 0.0
        if mass.w[k] > mass.w[at]:
            at = k
    low, guess = np.inf, np.int64(-1)
    while at >= 0:
        x, y = mass.x[at], mass.y[at]
        f, gx, gy = _tangent(mass, n, x, y)
        low, guess = _better(f, np.int64(mass.cells[at]), low, guess)
        bounds[at] = np.inf
        at, least = -1, low * (1.0 + TIE)
        for k in range(n):
            bounds[k] = max(
                bounds[k], _lowest_over(f, gx, gy, x, y, mass.x[k], mass.x[k], mass.y[k], mass.y[k])
            )
            if bounds[k] <= least:
                at, least = k, bounds[k]
    return guess, low


@kernel
def best_guess(mass, n, boxes, bounds):
    """(location, expected distance in km) over all cells of a grid, or the support of points."""
    if mass.cols > 0:
        return guess_on_grid(mass, n, boxes, bounds)
    return guess_in_support(mass, n, bounds)

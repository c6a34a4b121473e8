"""Fixes sorted by user and time: which to drop, where a trace breaks, which one speaks for a
step."""

import math

import numpy as np

from pglp_fast._kernels.base.jit import kernel

FIRST, LAST, NEAREST = 0, 1, 2
OUTSIDE = (
    -2
)  # a step with a fix that is not on the map: missing, and nothing may be carried over it


@kernel
def in_order(user, time):
    for i in range(1, len(user)):
        if user[i] < user[i - 1] or (user[i] == user[i - 1] and time[i] < time[i - 1]):
            return False
    return True


@kernel
def mark_duplicates(user, time, keep_last, keep):
    """Of fixes with the same user and time, leave the first or the last in ``keep``: how many
    were not left."""
    dropped, kept = 0, -1
    for i in range(len(user)):
        if not keep[i]:
            continue
        if kept >= 0 and user[i] == user[kept] and time[i] == time[kept]:
            keep[kept if keep_last else i] = False
            dropped += 1
            if not keep_last:
                continue
        kept = i
    return dropped


@kernel
def distance_km(lat1, lon1, lat2, lon2, radius):
    """Great circle, by haversines: hav(d/R) = hav(dlat) + cos(lat1) cos(lat2) hav(dlon)."""
    a = math.sin(math.radians(lat2 - lat1) / 2) ** 2
    b = math.sin(math.radians(lon2 - lon1) / 2) ** 2
    h = a + math.cos(math.radians(lat1)) * math.cos(math.radians(lat2)) * b
    return 2 * radius * math.asin(min(1.0, math.sqrt(h)))


@kernel
def mark_fast(user, time, lat, lon, km_per_ms, radius, keep):
    """Drop each fix that its user could only have reached, from the last fix kept, above a speed:
    how many.

    No way is longer than along a meridian and then along the equator; most fixes need no more than
    that."""
    dropped, kept = 0, -1
    km_per_degree = math.radians(radius) * (1 + 1e-12)
    for i in range(len(user)):
        if not keep[i]:
            continue
        if kept >= 0 and user[i] == user[kept]:
            reach = km_per_ms * (time[i] - time[kept])
            if (
                abs(lat[i] - lat[kept]) + abs(lon[i] - lon[kept])
            ) * km_per_degree > reach and distance_km(
                lat[kept], lon[kept], lat[i], lon[i], radius
            ) > reach:
                keep[i] = False
                dropped += 1
                continue
        kept = i
    return dropped


@kernel
def mark_breaks(user, time, part, gap, fresh):
    """Where a new segment starts: another user, a longer silence than ``gap``, or another part.

    How many there are.
    """
    n = 0
    for i in range(len(user)):
        fresh[i] = (
            i == 0
            or user[i] != user[i - 1]
            or time[i] - time[i - 1] > gap
            or (len(part) > 0 and part[i] != part[i - 1])
        )
        n += fresh[i]
    return n


@kernel
def measure_segments(time, fresh, origin, step, shift, lengths, firsts, rows):
    """Steps of each segment, the number of its first step, and the row of its first fix.

    Fix i is in step k = (time - origin + shift) // step; a division only where the step changes.
    """
    n, k, end = -1, np.int64(0), np.int64(0)
    for i in range(len(time)):
        at = time[i] - origin + shift
        if fresh[i] or at >= end:
            k = at // step
            end = (k + 1) * step
            if fresh[i]:
                n += 1
                firsts[n], rows[n] = k, i
            lengths[n] = k - firsts[n] + 1


@kernel
def pick_fixes(time, fresh, origin, step, shift, rule, starts, firsts, picked):
    """The fix that speaks for each step of each segment; ``picked`` comes as -1 everywhere."""
    n, k, end = -1, np.int64(0), np.int64(0)
    for i in range(len(time)):
        at = time[i] - origin + shift
        if fresh[i] or at >= end:
            k = at // step
            end = (k + 1) * step
        n += fresh[i]
        to = starts[n] + k - firsts[n]
        before = picked[to]
        if before < 0 or rule == LAST:
            picked[to] = i
        elif rule == NEAREST:
            moment = origin + k * step
            if abs(time[i] - moment) < abs(time[before] - moment):
                picked[to] = i


@kernel
def carry_forward(starts, reach, cells):
    """Fill missing steps with the cell up to ``reach`` steps before; OUTSIDE becomes missing:
    how many were filled."""
    filled = 0
    for s in range(len(starts) - 1):
        cell, age = np.int32(-1), 0
        for at in range(starts[s], starts[s + 1]):
            age += 1
            if cells[at] >= 0:
                cell, age = cells[at], 0
            elif cells[at] == OUTSIDE:
                cell = np.int32(-1)
                cells[at] = -1
            elif cell >= 0 and age <= reach:
                cells[at] = cell
                filled += 1
    return filled

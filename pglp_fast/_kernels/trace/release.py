"""The release of one user at one step: draw from s's component, and say how likely that was.

A domain that is small is released from by its remembered pattern, any other by its repaired
graph."""

from collections import namedtuple

import numpy as np

from pglp_fast._kernels.base.bits import test1
from pglp_fast._kernels.base.jit import kernel
from pglp_fast._kernels.base.lattice import difference
from pglp_fast._kernels.base.sorting import lower_bound
from pglp_fast._kernels.exposure.domain_view import COMPONENT
from pglp_fast._kernels.exposure.repaired_domain import (
    component_hull,
    component_of,
    edges_inside,
    label_components,
)
from pglp_fast._kernels.geometry.kdtree import ALONG_A_LINE, ROUNDING
from pglp_fast._kernels.noise.cones import draw_noise
from pglp_fast._kernels.noise.line_emission import nearest_along
from pglp_fast._kernels.noise.noise_polygon import noise_polygon
from pglp_fast._kernels.policy.shapes import sites_of

from .likelihood import likelihoods
from .patterns import anchor_of, describe, remember, seek
from .records import LOGS
from .snap import nearest_in_domain, nearest_member
from .table_cache import component_key, draw_position, find, remap, remapped_column

# cell: released, -1 for none; positions in the domain of what may be said; entry, column: the table
# that was drawn from and the position that was said, -1 where the likelihoods ln Pr(z|s) lie in the
# work space; key: of a table that is missing; of noise, what there is to prove; else empty
Release = namedtuple("Release", "cell positions entry column key")
# before a release: C_t with p_t^- on it, the location s that is released (a surrogate, maybe), the
# slot of the domain's pattern (-1: it is not kept) and whether it is remembered there, and the
# table of s, -1 where that is not known; and where a domain is kept that is too large for a
# pattern, -1 for others
Known = namedtuple("Known", "domain s slot known entry large")
# what a release may say: positions in the domain and cells, the sensitivity hull, and what there is
# to prove of noise (empty where a table is drawn from)
Output = namedtuple("Output", "positions members hull claim")
CLAIM = 8  # numbers of a claim before the vertices
_BITS = 6  # the one among them that is epsilon's


@kernel
def _output_set(policy, settings, repaired, s):
    """(positions, hull) of what a release from s may say."""
    view = repaired.domain
    if settings.calibration == COMPONENT:
        positions = component_of(policy, repaired, view.position[s])
        hull = repaired.hull
        if settings.with_hull:
            hull = component_hull(policy, repaired, positions)
        return positions, hull
    return np.arange(view.cells.shape[0]).astype(np.int32), repaired.hull


@kernel
def _claim(policy, settings, repaired, positions, hull):
    """What a proof of noise needs: whether all edges lie in the hull; how many locations the output
    set has, its extent, whether they fill that (on a grid) plus twice the policy's denominator, and
    whether they lie on the hull's line; the bits of epsilon; the hull."""
    lattice, cells, h = policy.lattice, repaired.domain.cells, hull.shape[0]
    first = cells[positions[0]]
    low_x = high_x = low_y = high_y = np.int64(0)
    in_line = True
    for p in positions:
        x, y = difference(lattice, first, cells[p])
        low_x, high_x = min(low_x, x), max(high_x, x)
        low_y, high_y = min(low_y, y), max(high_y, y)
        in_line &= x * hull[h - 1, 1] == y * hull[h - 1, 0]
    out = np.empty(CLAIM + 2 * h, np.int64)
    width, height, k = high_x - low_x + 1, high_y - low_y + 1, positions.shape[0]
    out[0], out[1], out[2] = edges_inside(policy, repaired, positions, hull), k, width
    boxed = policy.rows > 0 and width * height == k
    out[3], out[4], out[5] = height, boxed + 2 * policy.denominator, in_line
    out[_BITS], out[7] = settings.bits, h
    for v in range(h):
        out[CLAIM + 2 * v], out[CLAIM + 2 * v + 1] = hull[v, 0], hull[v, 1]
    return out


@kernel
def no_output(repaired):
    """Nothing may be said."""
    none = np.empty(0, np.int32)
    return Output(none, none, repaired.hull, np.empty(0, np.int64))


@kernel
def output_of(policy, settings, repaired, s):
    """What a release from s may say, and of noise what there is to prove."""
    positions, hull = _output_set(policy, settings, repaired, s)
    members, claim = repaired.domain.cells[positions], np.empty(0, np.int64)
    if members.shape[0] > settings.tables:
        claim = _claim(policy, settings, repaired, positions, hull)
    return Output(positions, members, hull, claim)


@kernel
def allows(output, s):
    """Whether a release from s may say this."""
    at = lower_bound(output.members, s)
    return at < output.members.shape[0] and output.members[at] == s


@kernel
def _release_noise(policy, settings, view, output, s, replay, words, space):
    """Draw noise and snap it; returns the released cell (replayed: s itself)."""
    members = output.members
    polygon = noise_polygon(output.hull, settings.polygon, policy.dx, policy.dy)
    z, place, t = np.int64(s), lower_bound(members, s), 0.0
    if polygon.shape[0] > 1 and not replay:
        dx, dy = draw_noise(words, polygon, settings.epsilon)
        tie = ALONG_A_LINE if polygon.shape[0] == 2 else ROUNDING
        if members.shape[0] < view.cells.shape[0]:
            z = nearest_member(policy, members, s, dx, dy, tie)
        else:
            z = nearest_in_domain(policy, members, view.words, s, dx, dy, tie)
        t = dx / polygon[1, 0] if abs(polygon[1, 0]) >= abs(polygon[1, 1]) else dy / polygon[1, 1]
    at = lower_bound(members, z)
    likelihoods(policy, settings, members, at, polygon, space)
    if polygon.shape[0] == 2 and space.likelihood[place] == -np.inf:
        # a tie along the line that the search broke otherwise: what is released must be possible
        sites = sites_of(members, policy.lattice)
        at = nearest_along(place, t, sites, policy.stretch, polygon[1, 0], polygon[1, 1])
        likelihoods(policy, settings, members, at, polygon, space)
    return np.int64(members[at])


@kernel
def _release_table(settings, tables, entry, positions, belief, place, replay, words, space):
    """(position that is said, its column in the table or -1) for the member number ``place``.

    Remapped answers have likelihoods of their own, which are written out."""
    k = positions.shape[0]
    z = place
    if not replay:
        z = draw_position(tables, entry, k, place, words[0])
    if not settings.remap:
        return z, z
    logs = np.empty(k)
    for p in range(k):
        logs[p] = belief.values[positions[p]]
        if belief.kind != LOGS:
            logs[p] = np.log(logs[p])
    to, room = np.empty(k, np.int64), np.empty((2, k))
    remap(tables, entry, k, logs, to, room[0], room[1])
    if not replay:
        z = to[z]
    remapped_column(tables, entry, k, to, z, space.likelihood)
    for p in range(k):
        space.chances[p] = np.exp(space.likelihood[p])
    return z, np.int64(-1)


@kernel
def _by_table(settings, tables, entry, cells, positions, belief, s, replay, words, space):
    place = 0
    while cells[positions[place]] != s:
        place += 1
    z, column = _release_table(
        settings, tables, entry, positions, belief, np.int64(place), replay, words, space
    )
    return Release(np.int64(cells[positions[z]]), positions, entry, column, np.empty(0, np.int64))


@kernel
def release_output(policy, settings, tables, repaired, output, belief, s, replay, words, space):
    """Release a location s of the domain, or replay that it was released, where what may be said is
    known."""
    positions, members, hull, claim = output
    view = repaired.domain
    if claim.shape[0] > 0:
        cell = _release_noise(policy, settings, view, output, s, replay, words, space)
        claim[_BITS] = settings.bits
        return Release(cell, positions, np.int64(-1), np.int64(-1), claim)
    wanted = component_key(policy, settings, repaired, positions, members, hull)
    entry = find(tables, wanted)
    if entry < 0:
        return Release(np.int64(-1), positions, entry, entry, wanted)
    return _by_table(
        settings, tables, entry, view.cells, positions, belief, s, replay, words, space
    )


@kernel
def release_from(policy, settings, tables, repaired, belief, s, replay, words, space):
    """Release a location s of the domain, or replay that it was released."""
    output = output_of(policy, settings, repaired, s)
    return release_output(
        policy, settings, tables, repaired, output, belief, s, replay, words, space
    )


@kernel
def look_up(policy, settings, space, cells):
    """(slot, whether it holds this very domain's pattern); a slot of -1: it is not to be kept."""
    if settings.tables == 0:
        return -1, False
    anchor = anchor_of(settings.choice, settings.anchored, cells)
    first = describe(policy, cells, space.domain.head, anchor, space.key)
    if first < 0:
        return -1, False
    return seek(space.patterns, first, space.key, cells.shape[0], anchor)


@kernel
def learn(policy, settings, space, slot, repaired):
    """Remember a repaired domain in the slot of its pattern; returns the slot, -1 if it does not
    fit."""
    cells = repaired.domain.cells
    if settings.calibration == COMPONENT:
        label = label_components(policy, repaired)
    else:
        label = np.zeros(cells.shape[0], np.int32)
    fits = remember(
        space.patterns, slot, space.key, anchor_of(settings.choice, settings.anchored, cells),
        repaired.domain.position, repaired.added, repaired.counts, label,
    )  # fmt: skip
    return slot if fits else np.int64(-1)


@kernel
def known_entry(patterns, slot, cells, s):
    """(the component of s in a remembered pattern, its table); -1 for a table not yet known."""
    component = patterns.label[slot, lower_bound(cells, s)]
    return component, np.int64(patterns.entries[slot, component])


@kernel
def _alike(label, n, wanted):
    """Positions with this label, ascending."""
    k = 0
    for q in range(n):
        k += label[q] == wanted
    positions = np.empty(k, np.int32)
    k = 0
    for q in range(n):
        if label[q] == wanted:
            positions[k] = q
            k += 1
    return positions


@kernel
def release_pattern(settings, space, tables, known, replay, words):
    """``release_from`` for a domain whose pattern is remembered, with the table of s."""
    domain, slot = known.domain, known.slot
    component = known_entry(space.patterns, slot, domain.cells, known.s)[0]
    positions = _alike(space.patterns.label[slot], domain.cells.shape[0], component)
    return _by_table(
        settings, tables, known.entry, domain.cells, positions, domain, known.s, replay, words,
        space,
    )  # fmt: skip


@kernel
def learn_entry(patterns, slot, known, entry):
    """Remember the table of s, where the pattern of its domain is kept."""
    if slot >= 0:
        component = known_entry(patterns, slot, known.domain.cells, known.s)[0]
        patterns.entries[slot, component] = entry


@kernel
def nothing_released():
    """No release, for a step that does not come to one."""
    none = np.empty(0, np.int32)
    return Release(np.int64(-1), none, np.int64(-1), np.int64(-1), np.empty(0, np.int64))


@kernel
def surrogate_of(policy, cells, words, cell):
    """The location of the domain nearest to a cell that is not in it; the cell itself if it is."""
    s = np.int64(cell)
    if test1(words, s):
        return s
    return nearest_in_domain(policy, cells, words, s, 0.0, 0.0, ROUNDING)

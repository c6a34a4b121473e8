"""The first release of a user of whom a shared prior is all that is known.

All users of one prior start from the same domain, however large. What a first release needs is the
component of the true location and its table: both are kept for the users who start there next. The
general way of ``run`` repairs the domain and finds components; this only looks them up, and gives
the same bits."""

from collections import namedtuple

import numpy as np

from pglp_fast._kernels.base.jit import bare, kernel

from .forward import Belief, settle
from .posterior import log_products
from .records import LOGS
from .table_cache import draw_position

# What one release told, for the next: its cell, table and belief
First = namedtuple("First", "cell entry belief")


@bare
def begin(starts, k, prior, counts):
    """From now on, keep components of the domain of a prior under policy k, if nothing in it had to
    be repaired."""
    starts.prior[k] = prior if counts[2] == 0 else -1
    for q in range(4):
        starts.counts[k, q] = counts[q]
    starts.number[k] = 0
    starts.start[k, 0] = 0
    for i in range(starts.component.shape[1]):
        starts.component[k, i] = -1


@bare
def learn_component(starts, k, prior, cells, positions, entry):
    """Keep the component at these positions of a prior's domain, and its table; once is enough."""
    if starts.prior[k] != prior or entry < 0 or starts.component[k, cells[positions[0]]] >= 0:
        return
    c = starts.number[k]
    at = starts.start[k, c]
    for p in positions:
        starts.component[k, cells[p]] = c
        starts.members[k, at] = p
        at += 1
    starts.entry[k, c], starts.start[k, c + 1] = entry, at
    starts.number[k] = c + 1


@bare
def component_at(starts, k, prior, s):
    """The component of location s in the domain of a prior, -1 where it is not known."""
    return starts.component[k, s] if starts.prior[k] == prior else np.int32(-1)


@bare
def tell_first(starts, k, n, e, out):
    """What is told of a first release, event e, from n locations."""
    counts = starts.counts
    out.surrogate[e], out.exposed[e] = False, counts[k, 3] > 0
    out.counts[e, 0] = n
    for q in range(3):
        out.counts[e, q + 1] = counts[k, q]


@kernel
def take_first(starts, k, c, tables, prior, s, word, own_cells, own_values):
    """Release location s of component c; ``prior``: its cells and logarithms. The new belief lies
    in the user's own room."""
    first, entry = starts.start[k, c], starts.entry[k, c]
    positions = starts.members[k, first : starts.start[k, c + 1]]
    place, n = 0, positions.shape[0]
    while prior.cells[positions[place]] != s:
        place += 1
    z = draw_position(tables, entry, n, place, word)
    m = log_products(tables.logs, tables.at[entry] + z * n, positions, prior, own_cells, own_values)
    belief = settle(Belief(LOGS, own_cells[:m], own_values[:m]))
    return First(prior.cells[positions[z]], entry, belief)

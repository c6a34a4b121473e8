"""What a run of users gathers from user to user and from event to event, in arrays that grow."""

from collections import namedtuple

import numpy as np

from pglp_fast._kernels.base.growing import Pool, append, contents
from pglp_fast._kernels.base.hashing import hash_row, slot_of
from pglp_fast._kernels.base.jit import kernel

from .posterior import keep_likelihoods
from .records import TOLD

# what grows from user to user: new beliefs, the ledger's cells and edges; and from event to event:
# likelihoods (cells, logarithms); keys of tables that are missing; claims of noise
Pools = namedtuple("Pools", "cells values kept edges row_cells row_logs keys claims")


@kernel
def make_pools():
    return Pools(
        Pool(np.empty(1024, np.int32), 0),
        Pool(np.empty(1024), 0),
        Pool(np.empty(1024, np.int32), 0),
        Pool(np.empty(128, np.int32), 0),
        Pool(np.empty(64, np.int32), 0),
        Pool(np.empty(64), 0),
        Pool(np.empty(64, np.int64), 0),
        Pool(np.empty(64, np.int64), 0),
    )


@kernel
def store(belief, at, account, used, u, next_event, pools, ends):
    """What is known of a user after its last event."""
    ends.next[u], ends.at[u] = next_event, at
    ends.belief_kind[u], ends.belief_length[u] = belief.kind, belief.cells.shape[0]
    ends.ledger_kind[u], ends.kept_length[u] = account.kind, account.cells.shape[0]
    ends.edge_length[u] = account.edges.shape[0]
    for k in range(used.shape[0]):
        ends.used[u, k] = used[k]
    return Pools(
        append(pools.cells, belief.cells),
        append(pools.values, belief.values),
        append(pools.kept, account.cells),
        append(pools.edges, account.edges.reshape(-1)),
        pools.row_cells,
        pools.row_logs,
        pools.keys,
        pools.claims,
    )


@kernel
def _with_row(release, domain, tables, space, e, pools, out):
    """The likelihoods of event e behind those there are."""
    first = pools.row_cells.used
    cells, logs = keep_likelihoods(release, domain, tables, space, pools.row_cells, pools.row_logs)
    out.row_start[e], out.row_length[e] = first, cells.used - first
    p = pools
    return Pools(p.cells, p.values, p.kept, p.edges, cells, logs, p.keys, p.claims)


@kernel
def _with_key(pools, key):
    """A table is missing."""
    p, keys = pools, append(pools.keys, key)
    return Pools(p.cells, p.values, p.kept, p.edges, p.row_cells, p.row_logs, keys, p.claims)


@kernel
def _with_claim(pools, claim, told):
    """Noise was drawn: what is to be proved of it, unless that was told a short while ago."""
    h = hash_row(claim)
    slot = slot_of(h, TOLD)
    if told[slot] == h:
        return pools
    told[slot] = h
    p, claims = pools, append(pools.claims, claim)
    return Pools(p.cells, p.values, p.kept, p.edges, p.row_cells, p.row_logs, p.keys, claims)


@kernel
def record(release, known, requests, tables, space, e, pools, out):
    """Write down what event e released, and gather what there is to keep and to prove."""
    if release.cell < 0:
        return _with_key(pools, release.key) if release.key.shape[0] > 0 else pools
    out.released[e], out.table[e] = release.cell, release.entry
    if release.entry < 0:
        pools = _with_claim(pools, release.key, space.told)
    if requests.keep:
        pools = _with_row(release, known.domain, tables, space, e, pools, out)
    return pools


@kernel
def collect(pools):
    return (
        contents(pools.cells), contents(pools.values), contents(pools.kept),
        contents(pools.edges).reshape(-1, 2), contents(pools.row_cells), contents(pools.row_logs),
        contents(pools.keys), contents(pools.claims),
    )  # fmt: skip

"""What a release of traces takes and gives, as named tuples of arrays.

Users are independent and share the policy and the model. Work space is as large as the map, but
allocated once and touched only where users are."""

from collections import namedtuple

import numpy as np

from pglp_fast._kernels.exposure.repaired_domain import make_workspace

from .columns import make_columns
from .patterns import MAX_CELLS, make_patterns

# kinds of a belief and of a ledger; a number >= 0 is the row of a shared prior. The values of a
# belief are probabilities (OWN), or logarithms where a probability would underflow (LOGS)
NOT_STARTED, OWN, LOGS = -1, -2, -3
TOLD = 1 << 12  # claims of which a thread remembers that it has told them

# polygon: which noise polygon; tables: draw from tables for components of up to so many locations,
# whose keys may need the hull (with_hull) or the members themselves (anchored); remap: post-process
# answers; bits: epsilon's, as an integer; choice: the number of policy and epsilon, see ``choices``
Settings = namedtuple(
    "Settings",
    "epsilon polygon calibration strategy delta exact tables with_hull anchored remap bits choice",
)
# the matrices of all periods: row i of period k is indptr[k, i] .. indptr[k, i + 1] - 1; the move
# from step t to t + 1 is made by the matrix of period cycle[t % len(cycle)]
Moves = namedtuple("Moves", "indptr indices data cycle")
# what all users of a thread share, bound for kernels (see ``base.bound_arrays``): policies,
# ``Moves`` but for the cycle, settings, work space
World = namedtuple("World", "policies indptr indices data settings space")
# key of the noise; events start[u] .. start[u + 1] - 1 are those of user u, of which those from
# next[u] on are still to be released; order: which user is taken when, empty for one after the
# other; the user's number, the step and the cell of each event.
# choice: of each event; places: the policy for each place that was released last (-1: as chosen),
# empty where that does not matter; epsilons: by number. replay: the cells are what was released
# before, not where users were; keep: keep likelihoods
Requests = namedtuple(
    "Requests", "key start next order who steps cells choice places epsilons replay keep"
)
# of user u, at step at[u]: cells[start[u] : start[u + 1]] with values beside where kind[u] is OWN
# or LOGS, the shared prior kind[u] where it is not negative
Beliefs = namedtuple("Beliefs", "kind at start cells values")
# locations that were in every domain of user u, the same way, or none yet (NOT_STARTED); from
# edge_start[u] on, edges (m, 2) that some repair added and every other step kept or added; used: a
# bitmask of the policies that user u released under
LedgerRows = namedtuple("LedgerRows", "kind start cells edge_start edges used")
# of each event, to be filled in: the release, counts of (|C_t|, disconnected, isolated, added),
# flags, the table it was drawn from (-1: none), its choice, and where its likelihoods begin and how
# many there are
Outputs = namedtuple(
    "Outputs", "released counts surrogate exposed table choice row_start row_length"
)
# of each user, to be filled in: the next event, kind, step and length of the new belief and ledger
Ends = namedtuple(
    "Ends", "next belief_kind at belief_length ledger_kind kept_length edge_length used"
)
# the work space of ``exposure.repaired_domain`` for each of several domains, and their cells
Domains = namedtuple("Domains", "words head position rows cells")
# of the domain of a shared prior under each policy (see ``first``): the prior's number, or -1; the
# counts of its repaired domain; how many components are known, the component of each location (-1:
# not known), the positions members[start[c] : start[c + 1]] of component c, and its table
Starts = namedtuple("Starts", "prior counts number component start members entry")
# For one thread. domain: of ``exposure.repaired_domain``, large: the same for the large domains
# of ``large``; starts: of ``first``; the cache of patterns and room for one of its keys; targets of
# a move with their values, sums and flags (all False between uses); the user's own belief; what the
# ledger keeps; likelihoods, as logarithms and as they are, and a memory of them; and for ``glide``
# members of a component, a new belief, sizes; hashes of claims that were told
Workspace = namedtuple(
    "Workspace",
    "domain large starts patterns key cells values sums flagged own_cells own_values kept edges "
    "used likelihood chances columns positions new_cells new_values sizes told",
)


def words_for(policies: int) -> int:
    """Words of a bitmask of so many policies."""
    return -(-policies // 64)


def make_step_workspace(
    locations: int, cliques: int, policies: int = 1, rows: int = 0, cols: int = 0
) -> Workspace:
    """Work space of one thread, for a map (a grid, unless it has no rows) and policies of up to so
    many cliques.

    An edge that some repair added and others only kept was added at the first release under one of
    the policies: there are at most ``policies * locations`` of them."""
    n = locations
    twice = 2 * policies
    large = Domains(
        np.zeros((twice, -(-n // 64)), np.uint64),
        np.full((twice, max(cliques, 1)), -1, np.int32),
        np.empty((twice, n), np.int32),
        np.empty((twice, 4, n), np.int32),
        np.empty((twice, n), np.int32),
    )
    starts = Starts(
        np.full(policies, -1, np.int64), np.empty((policies, 4), np.int64),
        np.zeros(policies, np.int64), np.empty((policies, n), np.int32),
        np.empty((policies, n + 1), np.int32), np.empty((policies, n), np.int32),
        np.empty((policies, n), np.int32),
    )  # fmt: skip
    return Workspace(
        make_workspace(n, cliques), large, starts, make_patterns(),
        np.empty(MAX_CELLS, np.int64), np.empty(n, np.int32), np.empty(n), np.empty(n),
        np.zeros(n, np.bool_), np.empty(n, np.int32), np.empty(n), np.empty(n, np.int32),
        np.empty((policies * n, 2), np.int32), np.zeros(words_for(policies), np.uint64),
        np.empty(n), np.empty(n), make_columns(rows, cols), np.empty(MAX_CELLS + 1, np.int64),
        np.empty(MAX_CELLS, np.int32), np.empty(MAX_CELLS), np.empty(3, np.int64),
        np.zeros(TOLD, np.uint64),
    )  # fmt: skip


def make_outputs(events: int) -> Outputs:
    """Room for the results of so many events."""
    flags, rows = np.zeros((2, events), np.bool_), np.zeros((2, events), np.int64)
    table, choice = np.full(events, -1, np.int32), np.zeros(events, np.int32)
    counts = np.zeros((events, 4), np.int64)
    return Outputs(np.full(events, -1, np.int32), counts, *flags, table, choice, *rows)


def make_ends(users: int, policies: int = 1) -> Ends:
    """Room for what is known of so many users afterwards."""
    used = np.empty((users, words_for(policies)), np.uint64)
    return Ends(*np.empty((7, users), np.int64), used)

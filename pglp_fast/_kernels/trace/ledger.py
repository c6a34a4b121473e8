"""What composition keeps of one more release (the paper's section "Privacy Composition").

T releases that satisfy (eps_t, G_t) compose to (sum of eps_t, intersection of the G_t). An edge of
all policies of a user survives while both its ends are in every domain. Any other survives while
each step's repair adds it, or its policy has it with both ends in the domain."""

from collections import namedtuple

from pglp_fast._kernels.base.bits import test1
from pglp_fast._kernels.base.jit import bare, kernel
from pglp_fast._kernels.base.rows import row_cells
from pglp_fast._kernels.base.sorting import lower_bound
from pglp_fast._kernels.policy.graph import has_edge

from .choices import number_of_policy
from .records import NOT_STARTED, OWN

# of one user: locations that were in every domain, as in ``records.LedgerRows``, and edges that
# were repaired once and kept throughout; in the work space, as are the policies that were used
Account = namedtuple("Account", "kind cells edges")


@kernel
def open_account(ledger, u, space):
    """The account of user u, copied to the work space."""
    cells = row_cells(ledger.start, ledger.cells, u)
    edges = row_cells(ledger.edge_start, ledger.edges, u)
    for k in range(cells.shape[0]):
        space.kept[k] = cells[k]
    for k in range(edges.shape[0]):
        space.edges[k, 0], space.edges[k, 1] = edges[k, 0], edges[k, 1]
    for k in range(space.used.shape[0]):
        space.used[k] = ledger.used[u, k]
    return Account(ledger.kind[u], space.kept[: cells.shape[0]], space.edges[: edges.shape[0]])


@bare
def intersect(cells, before, kept):
    """Write the cells that are in both, ascending; returns how many. ``kept`` may be ``before``.

    A merge, or a search for each where that is shorter."""
    n = at = 0
    search = before.shape[0] > 32 * cells.shape[0]
    for cell in cells:
        if search:
            at = lower_bound(before, cell)
        while at < before.shape[0] and before[at] < cell:
            at += 1
        if at == before.shape[0]:
            break
        if before[at] == cell:
            kept[n] = cell
            n += 1
            at += 1
    return n


@kernel
def keep_cells(account, cells, prior, priors, space):
    """The account after one more domain; ``prior``: the number of the shared prior whose whole
    support the domain is, or negative."""
    kind, kept = account.kind, space.kept
    if kind == NOT_STARTED and prior >= 0:
        return Account(prior, kept[:0], account.edges)
    if kind == NOT_STARTED:
        n = cells.shape[0]
        for k in range(n):
            kept[k] = cells[k]
    elif kind >= 0:
        n = intersect(cells, row_cells(priors.start, priors.cells, kind), kept)
    else:
        n = intersect(cells, account.cells, kept)
    return Account(OWN, kept[:n], account.edges)


@kernel
def _joined(added, i, j):
    """Whether the repair joined location i to j: locations are repaired in ascending order."""
    low, high = 0, added.shape[0]
    while low < high:
        middle = (low + high) >> 1
        if added[middle, 0] < i:
            low = middle + 1
        else:
            high = middle
    return low < added.shape[0] and added[low, 0] == i and added[low, 1] == j


@bare
def _listed(cells, i):
    """Whether a location is among ascending cells."""
    at = lower_bound(cells, i)
    return at < cells.shape[0] and cells[at] == i


@bare
def stays(policy, cells, i, j):
    """Whether an edge is one of the policy's, with both ends in the domain of these cells."""
    joined = has_edge(policy.cliques, policy.indptr, policy.indices, i, j)
    return joined and _listed(cells, i) and _listed(cells, j)


@bare
def _in_all(policies, used, i, j):
    """Whether every policy that was used has this edge."""
    for k in range(policies.cliques.shape[0]):
        if test1(used, k):
            if not has_edge(policies.cliques[k], policies.indptr[k], policies.indices, i, j):
                return False
    return True


@bare
def was_kept(policies, used, kept, i, j):
    """Whether an edge that a policy's repair adds was kept by all releases before, under the
    policies used so far: both its ends are in ``kept``.

    A policy's repairs never add what it has: only at its first use can they add such an edge."""
    return _listed(kept, i) and _listed(kept, j) and _in_all(policies, used, i, j)


@kernel
def keep_edges(account, chosen, added, cells, priors, space):
    """The account after one more repair, of the domain of these cells. To be called before
    ``keep_cells``, and before the policy counts as used."""
    edges, n = space.edges, 0
    first = account.kind == NOT_STARTED
    for e in range(account.edges.shape[0]):
        i, j = account.edges[e, 0], account.edges[e, 1]
        if _joined(added, i, j) or _joined(added, j, i) or stays(chosen.policy, cells, i, j):
            edges[n, 0], edges[n, 1] = i, j
            n += 1
    if not (first or test1(space.used, number_of_policy(chosen))):
        kept = account.cells
        if account.kind >= 0:
            kept = row_cells(priors.start, priors.cells, account.kind)
        for e in range(added.shape[0]):
            i, j = added[e, 0], added[e, 1]
            if was_kept(chosen.policies, space.used, kept, i, j):
                edges[n, 0], edges[n, 1] = i, j
                n += 1
    elif first:
        for e in range(added.shape[0]):
            edges[n, 0], edges[n, 1] = added[e, 0], added[e, 1]
            n += 1
    return Account(account.kind, account.cells, edges[:n])

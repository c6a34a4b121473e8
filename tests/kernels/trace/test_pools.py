"""What is gathered along a run of users."""

import numpy as np

from pglp_fast._kernels.trace import pools as kernels
from pglp_fast._kernels.trace.forward import Belief
from pglp_fast._kernels.trace.ledger import Account
from pglp_fast._kernels.trace.records import OWN, TOLD, make_ends


def test_users_lie_end_to_end():
    pools, ends = kernels.make_pools(), make_ends(2, 70)
    for u in range(2):
        cells = np.arange(u + 1, dtype=np.int32)
        belief, account = (
            Belief(OWN, cells, cells / 2),
            Account(OWN, cells, np.ones((u, 2), np.int32)),
        )
        used = np.array([u + 1, 7], np.uint64)
        pools = kernels.store(belief, 4 + u, account, used, u, 10 + u, pools, ends)
    cells, values, kept, edges, *rest = kernels.collect(pools)
    assert cells.tolist() == kept.tolist() == [0, 0, 1]
    assert values.tolist() == [0.0, 0.0, 0.5]
    assert edges.tolist() == [[1, 1]]
    assert not any(len(part) for part in rest)
    assert ends.next.tolist() == [10, 11]
    assert ends.at.tolist() == [4, 5]
    assert ends.used.tolist() == [[1, 7], [2, 7]]
    assert ends.belief_length.tolist() == ends.kept_length.tolist() == [1, 2]
    assert ends.edge_length.tolist() == [0, 1]


def test_a_claim_is_told_once_in_a_while():
    pools, told = kernels.make_pools(), np.zeros(TOLD, np.uint64)
    for claim in ([1, 2], [1, 2], [1, 3]):
        pools = kernels._with_claim(pools, np.array(claim), told)
    assert kernels.collect(pools)[-1].tolist() == [1, 2, 1, 3]

"""Detailed balance, against the matrix of flows."""

import numpy as np
import pytest
import scipy.sparse

from pglp_fast._kernels.base.balance import is_balanced


def arrays(flow):
    """A chain with these flows: (CSR arrays, the distribution that it keeps)."""
    p = flow.sum(axis=1)
    csr = scipy.sparse.csr_array(flow / p[:, None])
    return csr.indptr.astype(np.int64), csr.indices.astype(np.int32), csr.data, p


def symmetric(n=30, seed=0):
    rng = np.random.default_rng(seed)
    flow = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.2))
    return flow + flow.T + np.eye(n)


@pytest.mark.parametrize("seed", range(5))
def test_flows_both_ways(seed):
    assert is_balanced(*arrays(symmetric(seed=seed)), 1e-12)


def test_one_flow_that_is_larger_one_way():
    flow = symmetric()
    i, j = (k[0] for k in np.nonzero(np.triu(flow, 1)))
    flow[i, j] *= 1 + 1e-9
    assert not is_balanced(*arrays(flow), 1e-12)
    assert is_balanced(*arrays(flow), 1e-6)


@pytest.mark.parametrize("way", [(3, 4), (4, 3), (0, 29), (29, 0)])
def test_a_way_without_a_way_back(way):
    """However little goes there: the last entry of a row, or one between others."""
    flow = symmetric()
    flow[way], flow[way[::-1]] = 1e-300, 0.0
    assert not is_balanced(*arrays(flow), 1e-12)

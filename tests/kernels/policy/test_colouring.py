"""Greedy colours on graphs that can be coloured by hand."""

import numpy as np
import pytest

from pglp_fast._kernels.policy import colouring, graph


@pytest.mark.parametrize(
    ("n", "edges", "expected"),
    [
        (3, [], [0, 0, 0]),
        (4, [(0, 1), (1, 2), (2, 3)], [0, 1, 0, 1]),
        (4, [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)], [0, 1, 2, 3]),
        (5, [(0, 4), (1, 4), (2, 4), (3, 4), (0, 1)], [0, 1, 0, 0, 2]),
    ],
    ids=["no edge", "path", "clique", "star with a side"],
)
def test_the_lowest_colour_that_is_free(n, edges, expected):
    indptr, indices = graph.pairs_to_csr(n, np.array(edges, np.int32).reshape(-1, 2))
    out = np.empty(n, np.int64)
    colouring.greedy(indptr, indices, out)
    assert out.tolist() == expected

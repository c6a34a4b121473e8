"""Hashes of fixes."""

import numpy as np

from pglp_fast._kernels.io import fix_hashes


def test_hashes_are_of_every_part_of_a_row():
    """One hash a row, whatever rows come before it; each of the three words counts."""
    words = np.arange(12, dtype=np.uint64).reshape(3, 4)

    def hashes(words):
        out = np.empty(words.shape[1], np.uint64)
        fix_hashes.hash_fixes(*(np.ascontiguousarray(w) for w in words), out)
        return out.tolist()

    first = hashes(words)
    assert len(set(first)) == 4
    assert hashes(words[:, ::-1]) == first[::-1]
    for column in range(3):
        changed = words.copy()
        changed[column, 1] += np.uint64(1)
        assert hashes(changed)[0] == first[0]
        assert hashes(changed)[1] != first[1]

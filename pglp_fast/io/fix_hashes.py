"""Hashes of fixes, by which the same fix is known again, whatever file it came from."""

import numpy as np
from numpy.typing import NDArray

from pglp_fast._kernels.io import fix_hashes as kernels

from .tracks import Tracks


def hash_fixes(tracks: Tracks) -> NDArray[np.uint64]:
    """A 64-bit mix of time and place of each fix that has both, whatever file it came from."""
    known = np.isfinite(tracks.lat) & np.isfinite(tracks.lon) & ~np.isnat(tracks.time)
    words = [
        np.ascontiguousarray(v[known]).view(np.uint64).copy()
        for v in (tracks.ms, tracks.lat, tracks.lon)
    ]
    out = np.empty(len(words[0]), np.uint64)
    kernels.hash_fixes(*words, out)
    return out

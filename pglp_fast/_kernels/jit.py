"""How kernels are compiled: said once, here.

``cache``: a second process compiles nothing. ``nogil``: the facade runs kernels side by side in plain threads.
``error_model="numpy"``: a division by zero gives inf, as the geometry expects, and no hidden branch.
No fastmath: infinities and the order of sums mean something in this package.
"""

from typing import Any

import numba

kernel: Any = numba.njit(cache=True, nogil=True, error_model="numpy")

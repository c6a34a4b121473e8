"""Sparse matrices from outside."""

from typing import Any

from pglp_fast.errors import PGLPError

from . import validate as check


def as_csr(matrix: Any, name: str, error: type[PGLPError]) -> Any:
    """A copy of a sparse or dense matrix of real numbers as a SciPy CSR array in float64.

    Indices are checked before anything is converted: SciPy's kernels trust them."""
    import scipy.sparse  # here: it would double the time of "import pglp_fast"

    if not scipy.sparse.issparse(matrix):
        dense = check.floats(matrix, name, error)
        if dense.ndim != 2:
            raise error(f"{name} must have rows and columns, got shape {dense.shape}")
        return scipy.sparse.csr_array(dense)
    if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
        raise error(
            f"{name} must be real numbers in rows and columns, got dtype {matrix.dtype} and shape "
            f"{matrix.shape}"
        )
    try:
        if hasattr(matrix, "check_format"):  # compressed formats
            matrix.check_format(full_check=True)
        csr = scipy.sparse.csr_array(
            matrix.astype(float)
        )  # before duplicates are added: int8 wraps
        csr.check_format(full_check=True)
    except (TypeError, ValueError, IndexError) as problem:
        raise error(f"{name} is a damaged sparse matrix ({problem}): build it again") from None
    return csr

"""Whether kernels must be compiled first, for those who import no kernel themselves."""

from pglp_fast._kernels.base.jit import is_compiled

__all__ = ["is_compiled"]

"""Jitted kernels on plain arrays.

Nothing here imports the facade (an import contract checks it).
"""

"""A city of 100,000 people x 100 steps on 1000 x 1000 cells, exact, certified, Parquet to Parquet:
its memory, and a cluster against one process."""

import pytest

from benchmarks.city import USUAL, measured

CITY = {**USUAL, "users": 100_000, "side": 1000}


def test_two_new_workers_of_dask_against_this_process(tmp_path, promise):
    """Each worker has to import, to load kernels and to read the model first. (What they write is
    the same, as the tests of executors say.)"""
    pytest.importorskip("distributed", reason="dask.distributed is not installed")
    here, there = (
        measured(tmp_path, {**CITY, "workers": name}) for name in ("this process", "2 Dask workers")
    )
    promise(here["bytes"] / 2**32, 1.0, "of 4 GiB")
    promise(there["seconds"] / here["seconds"], 1.3, "elapsed")

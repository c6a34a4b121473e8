"""``release_files`` in pools and on clusters: the same bytes, whoever does the work and dies.

PGLP_KILLS=10 pytest tests/pipeline/test_executors.py kills more workers of Dask."""

import contextlib
import os
import signal
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

import pglp_fast as pf
from cases import large
from cli_tools import trips
from pglp_fast.pipeline import executors
from pglp_fast.pipeline.executors import run_tasks
from table_cases import model, plan

parquet = pytest.importorskip("pyarrow.parquet")
csv = pytest.importorskip("pyarrow.csv")
KILLS = int(os.environ.get("PGLP_KILLS", 2))  # of workers of Dask


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two files of the same persons, a model, and what one process makes of them."""
    at = tmp_path_factory.mktemp("executors")
    (at / "in").mkdir()
    for k in range(2):
        trips(at / "in" / f"{k}.csv", 250, users=40, seed=k, inside=0.9)
        table = csv.read_csv(at / "in" / f"{k}.csv")
        parquet.write_table(table, at / "in" / f"{k}.parquet", row_group_size=60)
        (at / "in" / f"{k}.csv").unlink() if k else None
    (at / "in" / "0.parquet").unlink()
    model().save(at / "m.npz")
    said = pf.release_files(at / "in", at / "here", the_plan(at), batch_rows=40)
    assert said.persons == 40 and said.certificate.ok
    return at


def the_plan(at):
    return plan(mobility=at / "m.npz", budget=9, on_error="skip")


def the_same(a, b):
    names = sorted(p.name for p in a.iterdir())
    assert names == sorted(p.name for p in b.iterdir())
    return all((a / name).read_bytes() == (b / name).read_bytes() for name in names)


def pool():
    return ProcessPoolExecutor(2, mp_context=get_context("spawn"))


@pytest.mark.parametrize("rows", [7, 1000])
def test_results_do_not_depend_on_the_parts(folder, tmp_path, rows):
    """Would catch a person that is split, or noise that depends on neighbours."""
    said = pf.release_files(folder / "in", tmp_path / "out", the_plan(folder), batch_rows=rows)
    assert said.persons == 40
    for name in ("0.csv", "1.parquet"):
        read = csv.read_csv if name.endswith("csv") else parquet.read_table
        assert read(tmp_path / "out" / name).equals(read(folder / "here" / name))


@large
def test_a_pool_of_processes(folder, tmp_path):
    with pool() as workers:
        pf.release_files(folder / "in", tmp_path / "out", the_plan(folder), workers, batch_rows=40)
    assert the_same(folder / "here", tmp_path / "out") and not list(tmp_path.glob("*.work"))


def die_once(marker, k):
    """The first process that takes task 3 dies of it."""
    if k == 3 and not os.path.exists(marker):
        open(marker, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return k * k


def test_a_pool_that_loses_a_process(tmp_path):
    done = []
    with pool() as workers, pytest.warns(RuntimeWarning, match="a worker process died"):
        tasks = [(str(tmp_path / "marker"), k) for k in range(9)]
        assert run_tasks(workers, die_once, tasks, done.append) == [k * k for k in range(9)]
    assert sorted(done) == list(range(9))


def test_errors_of_workers_are_ours(folder, tmp_path):
    with pool() as workers, pytest.raises(pf.BudgetExceeded, match="the first of user"):
        p = plan(mobility=folder / "m.npz", budget=3)
        pf.release_files(folder / "in", tmp_path / "out", p, workers, batch_rows=40)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(pf.InvalidParameter, match=r"executor must be .* got int"):
        pf.release_files(folder / "in", tmp_path / "out", the_plan(folder), 3)


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, processes=True
        ) as made,
        distributed.Client(made) as client,
    ):
        yield client


@large
@pytest.mark.filterwarnings("ignore")
def test_dask_workers_that_are_killed(folder, tmp_path, cluster):
    """Workers are killed at random while they work; the same bytes come out, and nothing waits
    for ever. The first release is undisturbed."""
    rng, kills, over = np.random.default_rng(5), 0, threading.Event()

    def kill():
        nonlocal kills
        while not over.wait(rng.uniform(0.05, 0.7)) and kills < KILLS:
            there = [w.pid for w in cluster.cluster.workers.values() if w.pid]
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(rng.choice(there)), signal.SIGKILL) if there else None
                kills += bool(there)

    killer, runs = threading.Thread(target=kill), 0
    while kills < KILLS:
        out = tmp_path / f"out{runs}"
        pf.release_files(folder / "in", out, the_plan(folder), cluster, batch_rows=40)
        assert the_same(folder / "here", out)
        killer.start() if not runs else None
        runs += 1
    over.set()
    killer.join()


@large
@pytest.mark.filterwarnings("ignore")
def test_errors_of_dask_tasks(cluster):
    """A task that fails because something timed out is no cluster to wait for."""
    with pytest.raises(TimeoutError, match="the disk"):
        run_tasks(cluster, time_out, [()])


def time_out():
    raise TimeoutError("the disk")


@large
@pytest.mark.filterwarnings("ignore")
def test_a_cluster_without_workers(tmp_path, cluster, monkeypatch):
    """Dask would wait for ever."""
    monkeypatch.setattr(executors, "PATIENCE_S", 0.5)
    monkeypatch.setattr(executors, "_LOOK_S", 0.1)
    tasks = [(str(tmp_path), k) for k in range(5)]
    assert run_tasks(cluster, die_once, tasks[:2]) == [0, 1]
    cluster.cluster.scale(0)
    with pytest.warns(RuntimeWarning, match="no workers any more; the 5 tasks"):
        assert run_tasks(cluster, die_once, tasks) == [k * k for k in range(5)]
    cluster.cluster.scale(2)

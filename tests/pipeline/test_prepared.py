"""A worker that is told the plan ahead reads it once, and only the plan of its job."""

import pickle

import numpy as np

import pglp_fast as pf
from pglp_fast.adversary.priors import make_priors
from pglp_fast.pipeline import task_context
from pglp_fast.pipeline.task_context import Context, context_of, prepare, put_context
from table_cases import model, plan


def job(folder, digest, the_plan):
    """The context of a job, as another process finds it."""
    put_context(folder, Context(the_plan, 3, [], digest, 1, 10, False, True, the_plan.digest))
    task_context._context.clear()


def test_the_plan_that_was_prepared_is_used(tmp_path):
    model().save(tmp_path / "m.npz")
    mine = plan(mobility=tmp_path / "m.npz")
    prepare(pickle.dumps(mine))
    (ahead,) = task_context._prepared
    job(tmp_path, "a", mine)
    assert context_of(tmp_path, "a").plan is ahead and not task_context._prepared


def test_another_plan_is_not(tmp_path):
    """Would catch a worker that keeps an old model: the file is another one by now."""
    model().save(tmp_path / "m.npz")
    prepare(pickle.dumps(plan(mobility=tmp_path / "m.npz")))
    grid = model().locations
    pf.MobilityModel(grid, np.eye(grid.size)).save(tmp_path / "m.npz", notes={"step_ms": 300_000})
    mine = plan(mobility=tmp_path / "m.npz")
    job(tmp_path, "b", mine)
    found = context_of(tmp_path, "b").plan
    assert found.digest == mine.digest and found.model.matrix().nnz == grid.size


def test_a_plan_that_cannot_be_read_is_left_to_the_job(tmp_path):
    prepare(pickle.dumps(plan(mobility=tmp_path / "nothing.npz")))
    assert task_context._prepared == []


def test_the_stationary_prior_is_made_once():
    m = model()
    one, two = make_priors(m, None, 2), make_priors(m, None, 5)
    assert one.rows is two.rows and len(two.of) == 5
    told = make_priors(m, m.stationary(), 1).rows
    assert all(np.array_equal(a, b) for a, b in zip(one.rows, told, strict=True))
    assert "_stationary_rows" not in pickle.loads(pickle.dumps(m)).__dict__

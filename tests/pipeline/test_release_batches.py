"""``pf.release_batches``: bit for bit what ``release_table`` makes of the whole."""

import numpy as np
import pytest

import pglp_fast as pf
from faults import ended, forked
from pglp_fast.pipeline.person_store import PersonStore
from table_cases import frame, model, plan

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


@pytest.fixture(scope="module")
def moving():
    return model()


def table(n=400, seed=1, users=None):
    """Rows by time, as they come; some are off the map, some have no time or place."""
    given = frame(n, seed).sort_values("time", kind="stable").reset_index(drop=True)
    given.loc[[5, 77], "time"] = None
    given.loc[[9, 80], "lat"] = np.nan
    if users:
        given["user"] = [f"u{k}" for k in np.random.default_rng(seed).integers(0, users, n)]
    return pa.Table.from_pandas(given, preserve_index=False)


def shuffled(batch, seed):
    """The same rows in another order, but those of one moment."""
    return batch.take(pa.array(np.random.default_rng(seed).permutation(len(batch))))


@pytest.mark.parametrize(("rows", "resident"), [(5, 1), (7, 3), (64, 1), (64, 1 << 16), (400, 2)])
def test_the_batches_are_the_whole(moving, rows, resident):
    """Would catch a state that is lost, stale or rounded when a person is evicted."""
    given, p = table(users=12), plan(mobility=moving, keep="all", budget=9, on_error="skip")
    done = pf.release_batches(given.to_batches(max_chunksize=rows), p, resident=resident)
    out = pa.Table.from_batches(list(done))
    assert out.equals(pf.release_table(given, p)) and "budget" in done.outcome.by_status
    assert done.outcome.rows == 400 and done.outcome.persons == 12 and done.outcome.most == 9
    assert done.outcome.certificate.ok and done.outcome.certificate.persons == 12


def test_policies_with_weights(moving):
    """What persons spent under weights goes to disk and comes back, and all is proved."""
    grid, line = moving.locations, np.arange(moving.locations.size - 1)
    weights = np.resize([(1, 2), (3, 1), (2, 3)], (len(line), 2))
    policy = pf.PolicyGraph.from_edges(grid, np.stack([line, line + 1], axis=1), weights)
    given, p = table(users=12), plan(mobility=moving, policy=policy, keep="all")
    done = pf.release_batches(given.to_batches(max_chunksize=50), p, resident=2)
    assert pa.Table.from_batches(list(done)).equals(pf.release_table(given, p))
    assert done.outcome.certificate.ok
    alone = plan(policy=policy, keep="all")
    assert pf.certify(alone.for_rows()).ok
    assert len(pf.release_table(given, alone)) == len(given)


def test_the_same_account_as_of_files(tmp_path, moving):
    given, p = table(users=12), plan(mobility=moving)
    parquet.write_table(given, tmp_path / "t.parquet")
    said = pf.release_files(tmp_path / "t.parquet", tmp_path / "o.parquet", p)
    done = pf.release_batches(given.to_batches(max_chunksize=50), p, resident=2)
    list(done)
    assert done.outcome.certificate == said.certificate
    assert (done.outcome.by_status, done.outcome.bare) == (said.by_status, said.bare)
    assert (done.outcome.surrogates, done.outcome.most) == (said.surrogates, said.most)
    assert done.outcome.repaired == said.repaired > 0


@pytest.mark.parametrize("budget", [None, 5])
def test_rows_one_by_one(budget):
    given, p = table(users=12), plan(keep="all", budget=budget, on_error="skip")
    out = pa.Table.from_batches(pf.release_batches(given.to_batches(max_chunksize=33), p))
    assert out.equals(pf.release_table(given, p))


def test_within_a_batch_in_any_order(moving):
    given, p = table(users=12), plan(mobility=moving)
    assert len(set(zip(given["user"].to_pylist(), given["time"].to_pylist()))) == 400
    parts = [shuffled(b, k) for k, b in enumerate(given.to_batches(max_chunksize=40))]
    out = pa.Table.from_batches(pf.release_batches(parts, p, resident=2))
    key = [("user", "ascending"), ("time", "ascending")]
    assert out.sort_by(key).equals(pf.release_table(given, p).sort_by(key))


def test_late_rows(moving):
    given = table(users=1)
    parts = given.to_batches(max_chunksize=200)[::-1]
    with pytest.raises(pf.InvalidTable, match="row 200 comes too late"):
        list(pf.release_batches(parts, plan(mobility=moving)))
    done = pf.release_batches(parts, plan(mobility=moving, on_error="skip"))
    statuses = pa.Table.from_batches(done)["released_status"].to_pylist()
    assert set(statuses[200:]) <= {"late", "missing", "outside", "repeat"}
    assert "step" in statuses[:200] and done.outcome.by_status["late"] > 100


def test_what_is_refused(moving):
    given, p = table(), plan(mobility=moving)
    parts = given.to_batches(max_chunksize=100)
    with pytest.raises(pf.InvalidParameter, match=r"must be of pyarrow\.RecordBatch, got Table"):
        next(pf.release_batches([given], p))
    with pytest.raises(pf.InvalidTable, match="from row 100 on has another schema"):
        list(pf.release_batches([parts[0], parts[1].drop_columns(["venue_id"])], p))
    with pytest.raises(pf.InvalidParameter, match="names is for text files"):
        pf.release_batches(parts, plan(names=["user"]))
    with pytest.raises(pf.BudgetExceeded, match="the first of user u"):
        list(pf.release_batches(parts, plan(mobility=moving, budget=3)))
    swapped = [b.rename_columns(["user", "time", "lon", "lat", "venue_id"]) for b in parts]
    with pytest.raises(pf.InvalidTable, match="are latitude and longitude swapped"):
        list(pf.release_batches(swapped, p))
    empty = list(pf.release_batches([parts[0].slice(0, 0)], p))
    assert len(empty[0]) == 0 and "released_exposed" in empty[0].schema.names


def test_two_persons_with_one_number():
    from pglp_fast.adversary.priors import make_priors
    from pglp_fast.traces.engine import first_state

    store = PersonStore(first_state(make_priors(model(), None, 1), 1), 1)
    for number in (5, 6, 7):
        store.put(store.take(np.array([number]), np.array([number * 10])))
    assert store.on_disk == 2
    with pytest.raises(pf.InvalidState, match="the same number by chance"):
        store.take(np.array([5]), np.array([51]))
    store.close()


@pytest.mark.parametrize("moves", [False, True])
def test_a_forked_release_is_refused(moves):
    """Both processes would draw with one key, for other rows."""
    batches = pa.Table.from_pandas(frame(40).sort_values("time")).to_batches(max_chunksize=20)
    release = pf.release_batches(batches, plan(mobility=model() if moves else None, seed=None))
    next(release)

    def goes_on():
        try:
            next(release)
        except pf.InvalidState:
            return 7

    assert ended(forked(goes_on)) == 7
    assert len(list(release)) == 1


@pytest.mark.parametrize("resident", [1, 100])
@pytest.mark.parametrize("book", [False, True])
def test_a_step_beyond_the_budget_stays_so(tmp_path, moving, resident, book):
    """The first row of a step decides on its epsilon, in whatever batch the others come. Would
    catch a step that is tried again with a smaller epsilon, also of who was on disk."""
    given = table(users=4).to_pandas()
    given["eps"] = np.random.default_rng(3).choice([0.5, 1.0, 8.0], len(given))
    given = pa.Table.from_pandas(given, preserve_index=False)

    def of(name):
        ledger = {"ledger": tmp_path / name} if book else {}
        how = {"budget": 9, "on_error": "skip", "step": "1h", "epsilon_column": "eps"} | ledger
        grid = moving.locations
        return plan(
            mobility=pf.MobilityModel(grid, np.full((grid.size,) * 2, 1 / grid.size)), **how
        )

    whole = pf.release_table(given, of("one"))
    done = pf.release_batches(given.to_batches(max_chunksize=1), of("two"), resident=resident)
    assert pa.Table.from_batches(list(done)).equals(whole)
    said = whole["released_status"].to_pylist()
    assert {"budget", "step", "repeat"} <= set(said)

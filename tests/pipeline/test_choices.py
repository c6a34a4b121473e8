"""Policies and epsilons by row: from columns, by time, by person, by what was released."""

import json

import numpy as np
import pytest

import pglp_fast as pf
from cli_tools import the_grid
from pglp_fast.pipeline.persons import person_number, persons_key
from pglp_fast.pipeline.steps import lay_out
from table_cases import frame, model, plan

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
G = the_grid()
NAMED = {"large": "blocks:4", "all": "complete"}
NEW = ["released_cell", "released_status", "released_policy", "released_epsilon"]


@pytest.fixture(scope="module")
def moving():
    return model()


def chosen_frame(n=200):
    """Rows with a policy and an epsilon each; some of them say nothing."""
    given, rng = frame(n), np.random.default_rng(4)
    given["wish"] = rng.choice(["default", "large", "all", ""], n)
    given["eps"] = rng.choice([0.5, 1.0, 2.0, np.nan], n)
    return given


def by_columns(**more):
    return plan(policies=NAMED, policy_column="wish", epsilon_column="eps", **more)


def events_of(given):
    """(rows that are released, their persons' numbers, steps, cells) as the pipeline has them."""
    cells = G.locate(given["lat"].to_numpy(), given["lon"].to_numpy())
    key = persons_key(3)
    person = np.array([person_number(key, u) for u in given["user"]])
    ms = given["time"].to_numpy().astype("datetime64[ms]").astype(np.int64)
    on = np.flatnonzero(cells >= 0)
    steps = lay_out(person[on], ms[on], 300_000, None)
    rows = on[steps.rows]
    return rows, pf.Events(person[rows], steps.step, cells[rows])


def test_rows_by_columns_equal_separate_mechanisms():
    """Would catch a row drawn with another row's policy, or another stream of noise."""
    given = chosen_frame()
    out = pf.release_table(given, by_columns())
    cells = G.locate(given["lat"].to_numpy(), given["lon"].to_numpy())
    graphs = {"default": pf.blocks(G, 3), "large": pf.blocks(G, 4), "all": pf.complete(G)}
    for k in range(len(given)):
        if cells[k] < 0:
            assert out["released_policy"].isna().iloc[k]
            assert np.isnan(out["released_epsilon"].iloc[k])
            continue
        name, eps = given["wish"].iloc[k] or "default", given["eps"].iloc[k]
        eps = 1.0 if np.isnan(eps) else eps
        drawn = pf.PPIM(graphs[name], epsilon=eps).release([cells[k]], users=[k], rng=3)
        assert out["released_cell"].iloc[k] == drawn[0]
        assert (out["released_policy"].iloc[k], out["released_epsilon"].iloc[k]) == (name, eps)


def test_traces_by_columns_equal_the_releaser(moving):
    given = chosen_frame()
    out = pf.release_table(given, by_columns(mobility=moving))
    rows, events = events_of(given)
    policies = {"default": pf.blocks(G, 3), "large": pf.blocks(G, 4), "all": pf.complete(G)}
    names = given["wish"].replace("", "default").to_numpy()[rows].astype(str)
    eps = given["eps"].fillna(1.0).to_numpy()[rows]
    R = pf.TraceReleaser(policies, moving, epsilon=1.0, rng=3).run(
        events, policy=names, epsilon=eps
    )
    assert (out["released_cell"].to_numpy()[rows] == R.released).all()
    assert (out["released_policy"].to_numpy()[rows] == names).all()
    assert (out["released_epsilon"].to_numpy()[rows] == eps).all()


def test_by_person_equals_separate_releases(moving):
    """One policy a person: bit for bit what a release of those persons alone gives."""
    given = frame()
    schedule = {"persons": {"u1": "large", "u2": {"policy": "all", "epsilon": 0.5}, "u3": 2.0}}
    out = pf.release_table(given, plan(policies=NAMED, schedule=schedule, mobility=moving))
    for user, policy, eps in (
        ("u0", "blocks:3", 1.0), ("u1", "blocks:4", 1.0), ("u2", "complete", 0.5),
        ("u3", "blocks:3", 2.0),
    ):  # fmt: skip
        mine = (given["user"] == user).to_numpy()
        alone = pf.release_table(given[mine], plan(policy=policy, epsilon=eps, mobility=moving))
        found = alone["released_cell"].to_numpy()
        np.testing.assert_array_equal(out["released_cell"][mine].to_numpy(), found)


def test_by_time_and_by_released_place_equal_a_schedule(moving):
    given, west = frame(), np.flatnonzero(G.xy(np.arange(G.size))[:, 0] < 2)
    rules = {"times": {"03:00-09:00": "large"}, "released": {"all": west.tolist()}}
    out = pf.release_table(given, plan(policies=NAMED, schedule=rules, mobility=moving))
    rows, events = events_of(given)
    policies = {"default": pf.blocks(G, 3), "large": pf.blocks(G, 4), "all": pf.complete(G)}
    S = pf.Schedule(
        "default", times=rules["times"], released={"all": west}, step="5min", start="00:00"
    )
    T = pf.TraceReleaser(policies, moving, epsilon=1.0, rng=3)
    R = T.run(events, policy=S, evidence=True)
    assert (out["released_cell"].to_numpy()[rows] == R.released).all()
    names = np.array(list(policies))[R.evidence.policy]
    told = out["released_policy"].to_numpy()[rows][events.order]
    assert (told == names).all() and len(set(told)) == 3
    ahead = pf.release_table(
        given, plan(policies=NAMED, schedule=rules | {"utc_offset": "9h"}, mobility=moving)
    )
    hour = given["time"].dt.hour
    assert (ahead["released_policy"][(hour >= 18) | (hour < 0)].dropna() != "default").all()


PLANS = [
    {"policies": NAMED, "policy_column": "wish", "epsilon_column": "eps"},
    {
        "policies": NAMED,
        "schedule": {
            "times": {"20:00-04:00": {"policy": "large", "epsilon": 0.25}},
            "persons": {"u1": "all"},
            "released": {"large": list(range(60))},
        },
    },
    {"epsilon_column": "eps", "budget": {"total": 9, "1d": 4}, "on_error": "skip"},
]


@pytest.mark.parametrize("more", PLANS, ids=["columns", "schedule", "budgets"])
def test_files_and_batches_equal_the_table(tmp_path, moving, more):
    """Also in parts, and with persons who wait on disk between batches."""
    given = chosen_frame(400).sort_values("time").reset_index(drop=True)
    p = plan(mobility=moving, keep="all", **more)
    whole = pf.release_table(pa.Table.from_pandas(given), p)
    parts = pa.Table.from_pandas(given).to_batches(max_chunksize=37)
    made = pf.release_batches(parts, p, resident=2)
    assert pa.Table.from_batches(list(made)).equals(whole)
    given.to_csv(tmp_path / "t.csv", index=False)
    moving.save(tmp_path / "m.npz", notes=moving.notes)
    p = plan(mobility=tmp_path / "m.npz", keep="all", **more)
    said = pf.release_files(tmp_path / "t.csv", tmp_path / "o.csv", p, batch_rows=60)
    out = pd.read_csv(tmp_path / "o.csv")
    for name in ("released_cell", "released_status", "released_epsilon", "released_policy"):
        if name in whole.column_names:
            expected = whole.to_pandas()[name].astype(object).where(lambda v: v.notna(), None)
            found = out[name].astype(object).where(lambda v: v.notna(), None)
            assert found.tolist() == expected.tolist()
    assert said.certificate.ok and made.outcome.certificate.ok
    assert said.epsilons == made.outcome.epsilons
    facts = json.loads((tmp_path / "o.csv.json").read_text())
    assert "persons" not in facts.get("schedule", {})
    for name, one in facts.get("policies", {}).items():
        assert one["policy"] == NAMED[name] and len(one["edges_digest"]) == 64


def test_nonsense_is_named_or_kept_unreleased(moving):
    given = chosen_frame(50)
    given["wish"] = given["wish"].astype(object)
    given.iloc[7, given.columns.get_loc("wish")] = "nobody"
    given.iloc[9, given.columns.get_loc("eps")] = -1.0
    with pytest.raises(pf.InvalidTable, match=r"row 7: wish 'nobody'.*policies are default, large"):
        pf.release_table(given, by_columns())
    for more in ({}, {"mobility": moving}):
        out = pf.release_table(given, by_columns(on_error="skip", **more))
        bad = out["released_status"] == "malformed"
        assert np.flatnonzero(bad).tolist() == [7, 9]
    with pytest.raises(pf.InvalidTable, match="no column 'gone' for the policy"):
        pf.release_table(given, plan(policies=NAMED, policy_column="gone"))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"schedule": {"place": {"large": [1]}}}, "cannot be chosen by the place"),
        ({"schedule": {"times": {"1:00-2:00": "none"}}}, "there is no policy"),
        ({"schedule": {"hours": {}}}, "schedule has no 'hours'"),
        ({"schedule": {"times": {"noon": "large"}}, "policies": NAMED}, "spans of the day"),
        ({"schedule": {"times": {"1:00-2:00": [1]}}}, "give the name of a policy, an epsilon"),
        ({"schedule": {"periods": {0: "large"}}, "policies": NAMED}, "for users who move"),
        (
            {"schedule": {"periods": {"3": 0.5}}, "mobility": model()},
            "speaks of period 3, which never comes",
        ),
        (
            {"schedule": {"released": {"large": [10**6]}}, "policies": NAMED, "mobility": model()},
            r"released\['large'\]",
        ),
        ({"policies": NAMED}, "nothing says when they hold"),
        ({"policies": {"default": "complete"}}, "which is what policy= is called"),
        (
            {"policies": NAMED, "policy_column": "a", "schedule": {"persons": {"x": "all"}}},
            "the schedule says it",
        ),
        ({"budget": 3, "window": 5}, "is for users who move"),
        ({"window": 5}, "window goes with one budget"),
        ({"budget": {"soon": 3}}, "window must be a duration"),
        ({"budget": {"7min": 3}, "mobility": model()}, "is not a multiple of a step"),
    ],
)
def test_what_does_not_go_together_is_refused(more, message):
    with pytest.raises(pf.PGLPError, match=message):
        plan(**more).check()


def test_it_can_be_kept(tmp_path):
    p = plan(
        policies=NAMED, schedule={"times": {"22:00-06:00": "large"}, "persons": {"x y": 0.5}},
        budget={"total": 9, "2h": 1},
    )  # fmt: skip
    p.to_toml(tmp_path / "p.toml")
    again = pf.Plan.from_toml(tmp_path / "p.toml")
    assert again.digest == p.digest
    said = again.describe()
    assert "policies by schedule: default, large, all" in said and "1 over any 2h" in said
    other = plan(policies=NAMED, schedule={"times": {"22:00-06:00": "large"}, "persons": {"x": 1}})
    assert other.digest != p.digest


@pytest.mark.parametrize(
    ("key", "user"),
    [(7.0, 7), (np.int64(7), "7"), (" 7", 7.0), (True, True), (b"a", "a"), ("José", "Jose\u0301")],
)
def test_a_rule_for_a_person_holds_however_its_key_is_written(tmp_path, key, user):
    """Would catch a protection that is ignored without a word."""
    moves = pf.MobilityModel(G, np.full((G.size,) * 2, 1 / G.size))
    rules = {"persons": {key: "all"}, "periods": {np.int64(0): "large"}}
    p = plan(policies=NAMED, schedule=rules, mobility=moves, step="5min")
    where = G.latlon([0])[0]
    row = {"user": [user], "time": [pd.Timestamp("2026-01-05")], "lat": where[:1], "lon": where[1:]}
    assert pf.release_table(pd.DataFrame(row), p)["released_policy"].tolist() == ["all"]
    alone = plan(policies=NAMED, schedule={"persons": {key: "all"}})
    assert pf.release_table(pd.DataFrame(row), alone)["released_policy"].tolist() == ["all"]
    alone.to_toml(tmp_path / "plan.toml")
    assert pf.Plan.from_toml(tmp_path / "plan.toml").digest == alone.digest


@pytest.mark.parametrize(
    ("persons", "message"),
    [
        ({7: "all", "7.0": "all"}, r"7 and '7\.0' are one person, '7': give one"),
        ({True: "all", "true": "all"}, "True and 'true' are one person"),
        ({None: "all"}, "None is nobody's name"),
        ({" ": "all"}, "' ' is nobody's name"),
        ({float("nan"): "all"}, "nan is nobody's name"),
        ({7.5: "all"}, r"7\.5 is not a whole number"),
    ],
)
def test_keys_that_are_one_person_or_nobody_are_refused(persons, message):
    with pytest.raises(pf.InvalidParameter, match=message):
        plan(policies=NAMED, schedule={"persons": persons})

"""``pf.Plan``: checked when made, the same from every source, and bound to its content."""

import datetime
import pickle

import numpy as np
import pytest

import pglp_fast as pf
from cli_tools import the_grid
from pglp_fast.pipeline import plan_facts

G = the_grid()


def plan(**more):
    return pf.Plan(**{"grid": G, "policy": "blocks:3", "epsilon": 1.0, **more})


def model(**notes):
    made = pf.MobilityModel(G, np.eye(G.size) * 0.5 + 0.5 / G.size)
    made.notes = notes
    return made


DIFFERENT = [
    {"epsilon": 2.0},
    {"policy": "blocks:4"},
    {"mechanism": "plm"},
    {"calibration": "graph"},
    {"remap": "squared"},
    {"mobility": model(step_ms=300_000)},
    {"mobility": model(step_ms=600_000)},
    {"mobility": model(step_ms=300_000), "delta": 0.1},
    {"mobility": model(step_ms=300_000), "repair": "nearest"},
    {"mobility": model(step_ms=300_000, ahead_ms=3_600_000)},
    {"budget": 3.0},
    {"columns": {"user": "who"}},
    {"keep": ["user"]},
    {"keep": "all"},
    {"prefix": "x_"},
    {"on_error": "skip"},
    {"allow_outside": True},
    {"seed": 1},
    {"timezone": "Asia/Tokyo"},
    {"names": ["user", "time", "lat", "lon"]},
    {"delimiter": ";"},
    {"grid": pf.Grid.from_bounds(lat=(35.68, 35.72), lon=(139.60, 139.66), cell_km=0.4)},
]


def test_the_digest_is_of_everything_that_decides_the_output():
    made = [plan(**more).digest for more in ({}, *DIFFERENT)]
    assert len(set(made)) == len(made)
    assert plan(policy=pf.blocks(G, 3)).facts["edges_digest"] == plan().facts["edges_digest"]
    named = plan(mobility=model(step_ms=300_000), delta=0.0, likelihood="exact")
    assert named.digest == plan(mobility=model(step_ms=300_000)).digest  # the defaults, spelt out


def test_files_count_by_their_content(tmp_path):
    path, digests = tmp_path / "pairs.csv", set()
    for text in ("0,1\n", "0,2\n", "a,b\n0,1\n"):
        path.write_text(text)
        digests.add(plan(policy=f"edges:{path}").digest)
    assert len(digests) == 2
    one, other = tmp_path / "one.npz", tmp_path / "other.npz"
    for at in (one, other):
        model().save(at, notes={"step_ms": 300_000})
    assert plan(mobility=one).digest == plan(mobility=str(other)).digest


@pytest.mark.parametrize("more", [{}, *DIFFERENT], ids=lambda m: ",".join(m) or "plain")
def test_it_can_be_sent_and_kept(tmp_path, more):
    p = plan(**more)
    sent = pickle.loads(pickle.dumps(p))
    assert sent.digest == p.digest and sent.describe() == p.describe()
    if "mobility" in more:
        with pytest.raises(pf.InvalidParameter, match="mobility is an object in memory: save it"):
            p.to_toml(tmp_path / "p.toml")
        more["mobility"].save(tmp_path / "m.npz")
        p = plan(**{**more, "mobility": tmp_path / "m.npz"})
        assert p.digest == sent.digest
    p.to_toml(tmp_path / "p.toml")
    assert pf.Plan.from_toml(tmp_path / "p.toml").digest == p.digest


def test_typed_by_hand(tmp_path):
    path = tmp_path / "p.toml"
    grid = "grid = {lat = [35.68, 35.72], lon = [139.60, 139.65], cell_km = 0.4}\n"
    path.write_text(grid + 'epsilon = 1.0\npolicy = "blocks:3"\n')
    assert pf.Plan.from_toml(path).digest == plan().digest
    for text, message in (
        (grid, "must say epsilon and policy"),
        (grid + "epsilonn = 1", "unknown key 'epsilonn': did you mean epsilon"),
        (grid + "zzz = 1", "unknown key 'zzz': the keys are epsilon, policy"),
        ("grid = {lat = 1}\nepsilon = 1\npolicy = 'complete'", "grid must be"),
        ("grid = ", "is not TOML"),
    ):
        path.write_text(text)
        with pytest.raises(pf.InvalidParameter, match=message):
            pf.Plan.from_toml(path)
    with pytest.raises(pf.InvalidParameter, match="policy is an object in memory"):
        plan(policy=pf.blocks(G, 3)).to_toml(path)
    plan(mobility="m.npz", step=datetime.timedelta(minutes=5)).to_toml(path)
    assert 'step = "5min"' in path.read_text()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"epsilon": -1}, "epsilon"),
        ({"policy": 3}, "policy must be a PolicyGraph or a spelling"),
        ({"keep": "user"}, "keep must be a list of columns, or 'all'"),
        ({"delta": 0.1}, "delta is for users who move"),
        ({"repair": "nearest"}, "repair is for users who move"),
        ({"on_error": "stop"}, "on_error must be"),
        ({"budget": 0}, "budget must be"),
        ({"seed": -1}, "seed must be"),
        ({"step": "soon"}, "step must be a duration"),
        ({"timezone": "Mars"}, "timezone must be"),
        ({"calibration": "none"}, "calibration must be"),
        ({"mechanism": "none"}, "mechanism must be one of 'ppim'.* got 'none'"),
        ({"mechanism": "pim"}, "is for policy='complete'"),
        ({"grid": None}, "which map"),
        ({"grid": pf.Grid(3, 3)}, "has no latitude and longitude"),
        ({"policy": pf.blocks(pf.Grid(3, 3), 3)}, "over another map"),
        ({"mobility": model()}, "does not say how long its steps are"),
        ({"mobility": model(step_ms=60_000), "step": "5min"}, "step is 300 s, the model's"),
        ({"mobility": "none.npz"}, "make a model with"),
        (
            {
                "mobility": model(step_ms=1),
                "grid": pf.Grid.from_bounds(lat=(0, 1), lon=(0, 1), cell_km=9),
            },
            "the grid is not the model's",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(more, message):
    with pytest.raises(pf.PGLPError, match=message):
        plan(**more).check()


def test_it_says_what_it_is():
    text = plan(budget=3, seed=1, keep=["user", "note"]).describe()
    assert "12 x 12 cells of 0.4 km" in text and "blocks:3 (576 edges), ppim" in text
    assert "at most 3 for a person" in text and "rows are released one by one" in text
    assert "kept: user, note" in text and "seeded" in text
    text = plan(mobility=model(step_ms=300_000)).describe()
    assert "knows how people move; a person releases once in 5min" in text
    assert "kept: the user and the time" in text


@pytest.mark.parametrize("name", ["mechanism", "prefix", "columns", "keep"])
def test_what_is_of_the_wrong_kind_is_refused(name):
    with pytest.raises(pf.InvalidParameter, match=f"{name} must be .*, got 5"):
        pf.Plan(policy="blocks:3", epsilon=1.0, **{name: 5})


def test_what_it_says_of_itself_is_made_once(monkeypatch):
    """Digests of a large model and policy take a tenth of a second, and each output says them."""
    made, facts_of = [], plan_facts.facts_of
    monkeypatch.setattr(plan_facts, "facts_of", lambda p: made.append(p) or facts_of(p))
    p = plan()
    p.facts["policy"] = "another"  # a copy
    assert p.facts["policy"] == "blocks:3" and p.describe() and len(p.digest) == 64
    assert len(made) == 1

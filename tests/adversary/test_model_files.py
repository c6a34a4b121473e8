"""Files of models that were forged or damaged: refused whole, before any kernel sees them."""

import hashlib
import io
import json
import os
import zipfile

import numpy as np
import pytest

import pglp_fast as pf
from cases import npy, put
from cli_tools import run
from pglp_fast._util.storage import read_arrays, write_arrays

KIND = "mobility model"
GRID = pf.Grid(2, 3, origin=(35.0, 139.0))
TRACES = np.array([[0, 1, 2, 5, 4, 3, 0]])


@pytest.fixture
def saved(tmp_path):
    model = pf.MobilityModel.fit(GRID, TRACES, smoothing="neighbours8", periods=2)
    model.save(tmp_path / "model.npz", notes={"a": 1})
    return tmp_path / "model.npz"


def forge(path, change):
    """Change arrays and facts of a file, and give it a checksum that is right."""
    arrays, facts = read_arrays(path, KIND)
    change(arrays, facts)
    for name in ("kind", "version"):
        facts.pop(name)
    write_arrays(path, KIND, arrays, facts)


def swap(name, value):
    return lambda arrays, facts: arrays.update({name: value(arrays[name])})


def fact(name, value):
    return lambda arrays, facts: facts.update({name: value})


FORGED = {
    "off the map": put("indices1", 0, 2**30),
    "below the map": put("indices0", 3, -1),
    "twice": put("indices0", 1, 0),
    "long row": put("indptr0", 1, 10**9),
    "falling row": put("indptr0", 2, 0),
    "late start": put("indptr0", 0, 1),
    "row missing": swap("indptr0", lambda a: a[:-1]),
    "indices missing": swap("indices0", lambda a: a[:-1]),
    "data missing": swap("data1", lambda a: a[:0]),
    "nan": put("data0", 0, np.nan),
    "infinite": put("data0", 0, np.inf),
    "negative": put("data0", 0, -0.1),
    "zero": put("data0", 0, 0.0),
    "not a distribution": swap("data0", lambda a: a * 1.001),
    "indices of int64": swap("indices0", lambda a: a.astype(np.int64)),
    "indptr of int32": swap("indptr0", lambda a: a.astype(np.int32)),
    "other byte order": swap("indptr0", lambda a: a.astype(">i8")),
    "data of float32": swap("data0", lambda a: a.astype(np.float32)),
    "complex": swap("data0", lambda a: a + 0j),
    "text": swap("data0", lambda a: a.astype("U4")),
    "two dimensions": swap("data0", lambda a: a[:, None]),
    "one number": swap("data0", lambda a: a[0]),
    "array missing": lambda arrays, facts: arrays.pop("data0"),
    "all missing": lambda arrays, facts: arrays.clear(),
    "no periods": fact("periods", 0),
    "many periods": fact("periods", 10**9),
    "periods of text": fact("periods", "two"),
    "locations of text": fact("locations", "six"),
    "no locations": lambda arrays, facts: facts.pop("locations"),
    "no map": lambda arrays, facts: facts.pop("map"),
    "notes": fact("notes", [1]),
    "grid of a list": fact("grid", [1, 2]),
    "grid without rows": fact("grid", {"cols": 3}),
    "grid of nothing": fact("grid", {"rows": 0, "cols": 3, "cell_km": [1, 1], "projection": None}),
    "huge grid": fact(
        "grid", {"rows": 46_000, "cols": 46_000, "cell_km": [1, 1], "projection": None}
    ),
    "grid elsewhere": fact(
        "grid", GRID.to_dict() | {"projection": [10.0, 10.0, 10.0]}
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_model_is_refused(saved, name):
    """A model with indices off the map used to end in a segmentation fault."""
    forge(saved, FORGED[name])
    with pytest.raises(pf.PGLPError):
        pf.MobilityModel.open(saved)
    if not name.startswith(("grid", "huge")):  # load is told the map
        with pytest.raises((pf.InvalidState, pf.InvalidTransition)):
            pf.MobilityModel.load(GRID, saved)


def test_the_message_says_what_and_what_to_do(saved):
    forge(saved, put("indices1", 0, 2**30))
    with pytest.raises(pf.InvalidState, match=r"period 1 .* moves to location 1073741824.*restore"):
        pf.MobilityModel.open(saved)


def test_a_whole_model_is_still_read(saved):
    forge(saved, lambda arrays, facts: None)
    model = pf.MobilityModel.open(saved)
    assert model.periods == 2 and model.notes == {"a": 1}
    assert pf.MobilityModel.load(GRID, saved).matrix(1).sum() == pytest.approx(6)


def test_the_command_says_so_too(saved, capsys):
    forge(saved, put("indices1", 0, 2**30))
    run("certify", "--mobility", saved, "--epsilon", 1, "--policy", "blocks:2", code=2)
    assert "moves to location" in capsys.readouterr().err


# -- the container


def sealed(body):
    return b"pglp_fast\n" + hashlib.sha256(body).digest() + body


def archive(members, how=zipfile.ZIP_STORED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", how) as file:
        for name, raw in members.items():
            file.writestr(name, raw)
    return buffer.getvalue()


FACTS = npy(np.frombuffer(json.dumps({"kind": KIND, "version": 1}).encode(), np.uint8))
HUGE = b"\x93NUMPY\x01\x00\x46\x00{'descr': '<f8', 'fortran_order': False, 'shape': (10**12,), }"
BODIES = {
    "no archive": b"junk",
    "empty": b"",
    "no facts": archive({"a.npy": npy(np.arange(3))}),
    "facts of text": archive({"facts.npy": b"text"}),
    "facts that are no JSON": archive({"facts.npy": npy(np.arange(9, dtype=np.uint8))}),
    "a list of facts": archive({"facts.npy": npy(np.frombuffer(b"[1]", np.uint8))}),
    "objects": archive({"facts.npy": FACTS, "a.npy": npy(np.array([{}], object))}),
    "cut off": archive({"facts.npy": FACTS, "a.npy": npy(np.arange(9))[:-8]}),
    "a promise of terabytes": archive({"facts.npy": FACTS, "a.npy": HUGE}),
    "compressed": archive({"facts.npy": FACTS}, zipfile.ZIP_DEFLATED),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_forged_container_is_refused(tmp_path, name):
    (tmp_path / "m").write_bytes(sealed(BODIES[name]))
    with pytest.raises(pf.InvalidState, match="damaged"):
        pf.MobilityModel.open(tmp_path / "m")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes")
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(pf.InvalidParameter, match="pipe"):
        pf.MobilityModel.open(tmp_path / "pipe")


def test_what_json_does_not_take_is_not_written(tmp_path):
    model = pf.MobilityModel.fit(GRID, TRACES)
    for notes in ({"a": {1, 2}}, {"a": object()}, [1]):
        with pytest.raises(pf.InvalidParameter):
            model.save(tmp_path / "m", notes=notes)
    assert not list(tmp_path.iterdir())


# -- solutions that are kept for the next process


@pytest.mark.parametrize("damage", ["junk", "forged", "folder", "pipe"])
def test_a_damaged_solution_is_solved_again(tmp_path, damage):
    policy = pf.blocks(pf.Grid(2, 2), 2)
    wanted = pf.Optimal(policy, epsilon=1.0).matrix(0)[1]
    pf.Optimal(policy, epsilon=1.0, cache=tmp_path).matrix(0)
    (kept,) = tmp_path.iterdir()
    if damage == "junk":
        kept.write_bytes(b"junk")
    elif damage == "forged":
        write_arrays(kept, "solution", {"P": np.full((4, 4), np.nan)}, {})
    else:
        kept.unlink()
        kept.mkdir() if damage == "folder" else os.mkfifo(kept)
    again = pf.Optimal(policy, epsilon=1.0, cache=tmp_path)
    if damage in ("folder", "pipe"):
        with pytest.warns(RuntimeWarning, match="could not be kept"):
            found = again.matrix(0)[1]
    else:
        found = again.matrix(0)[1]
    assert np.allclose(found, wanted)

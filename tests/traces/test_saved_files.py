"""Saved files: whole or refused, for their owner only, and only for what they were saved under."""

import copy
import os
import pickle

import numpy as np
import pytest

import pglp_fast as pf
from cases import mode
from pglp_fast._util import storage as files
from pglp_fast.errors import InvalidState, PGLPError
from pglp_fast.traces import stream_file


def transitions(n, seed=0):
    A = np.random.default_rng(seed).random((n, n)) * (
        np.random.default_rng(seed + 1).random((n, n)) < 0.4
    ) + np.eye(n)
    return A / A.sum(axis=1, keepdims=True)


def releaser(**options):
    g = options.pop("locations", None) or pf.Grid(3, 3)
    G = options.pop("graph", None) or pf.blocks(g, 2)
    M = options.pop("model", None) or pf.MobilityModel(g, transitions(9))
    return pf.TraceReleaser(G, M, **{"epsilon": 1.0, **options})


@pytest.fixture
def saved(tmp_path):
    S = releaser().start(users=3, priors="point")
    S.step([1, 2, 3])
    S.step([1, -1, 3])
    path = tmp_path / "stream.state"
    S.save(path)
    return path


def test_readable_by_its_owner_only(tmp_path, saved):
    assert mode(saved) == 0o600
    old = os.umask(0)  # whatever the mask
    try:
        saved.chmod(0o666)  # and whatever was there before
        releaser().resume(saved).save(saved)
        assert mode(saved) == 0o600
        releaser().model.save(tmp_path / "model")
        assert mode(tmp_path / "model") == 0o600
    finally:
        os.umask(old)


def test_any_kind_of_path(tmp_path, monkeypatch):
    S = releaser().start(users=2)
    for path in (tmp_path / "a", str(tmp_path / "b.npz")):
        S.save(path)
        assert os.path.exists(path)
        releaser().resume(path)
    monkeypatch.chdir(tmp_path)
    S.save("here")
    releaser().resume("here")
    assert sorted(os.listdir(tmp_path)) == ["a", "b.npz", "here"]


@pytest.mark.parametrize("failing", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_failing_write_leaves_the_old_file(saved, monkeypatch, failing, error):
    T = releaser()
    S = T.resume(saved)
    before, t = saved.read_bytes(), S.t
    S.step([4, 4, 4])

    def fail(*_):
        raise error

    monkeypatch.setattr(files.os, failing, fail)
    with pytest.raises(type(error)):
        S.save(saved)
    monkeypatch.undo()
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == [saved.name]  # nothing is left lying about
    assert T.resume(saved, again=True).t == t
    S.save(saved)
    assert T.resume(saved).t == t + 1


def test_failing_write_of_a_new_file_leaves_nothing(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError("disk full")

    S = releaser().start()
    monkeypatch.setattr(files.os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        S.save(tmp_path / "new")
    assert os.listdir(tmp_path) == []


def test_no_such_place(tmp_path):
    S = releaser().start()
    with pytest.raises(FileNotFoundError):
        S.save(tmp_path / "nowhere" / "s")
    with pytest.raises(FileNotFoundError):
        releaser().resume(tmp_path / "nothing")


def test_truncated_anywhere(saved):
    T, whole = releaser(), saved.read_bytes()
    for length in [0, 1, 5, 9, 10, 11, 41, 42, 43, *range(44, len(whole), 251), len(whole) - 1]:
        saved.write_bytes(whole[:length])
        with pytest.raises(InvalidState, match=r"was not written by pglp_fast|is damaged"):
            T.resume(saved)
    saved.write_bytes(whole + b"\0")
    with pytest.raises(InvalidState, match="is damaged"):
        T.resume(saved)
    saved.write_bytes(whole)
    T.resume(saved)


def test_one_wrong_byte_anywhere(saved):
    T, whole = releaser(), saved.read_bytes()
    rng = np.random.default_rng(0)
    places = np.unique(
        np.concatenate([np.arange(60), rng.integers(0, len(whole), 400), [len(whole) - 1]])
    )
    for at in places:
        wrong = bytearray(whole)
        wrong[at] ^= 1 << rng.integers(8)
        saved.write_bytes(wrong)
        with pytest.raises(
            InvalidState, match="was not written by pglp_fast" if at < 10 else "is damaged"
        ):
            T.resume(saved)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"hello",
        b"PK\x03\x04" + bytes(100),
        b"pglp_fas",
        b"pglp_fast\n",
        b"pglp_fast\n" + bytes(32),
    ],
)
def test_foreign_files(tmp_path, content):
    path = tmp_path / "foreign"
    path.write_bytes(content)
    with pytest.raises(InvalidState, match=r"foreign (was not written by pglp_fast|is damaged)"):
        releaser().resume(path)
    with pytest.raises(InvalidState, match=r"foreign (was not written by pglp_fast|is damaged)"):
        pf.MobilityModel.load(pf.Grid(3, 3), path)


def test_npz_of_someone_else(tmp_path):
    np.savez(tmp_path / "x.npz", key=np.zeros(8))
    with pytest.raises(InvalidState, match="was not written by pglp_fast"):
        releaser().resume(tmp_path / "x.npz")


def test_model_is_not_a_stream(tmp_path, saved):
    T = releaser()
    T.model.save(tmp_path / "model")
    with pytest.raises(InvalidState, match="holds a mobility model, not a stream"):
        T.resume(tmp_path / "model")
    with pytest.raises(InvalidState, match="holds a stream, not a mobility model"):
        pf.MobilityModel.load(T.locations, saved)


def test_another_version(saved, monkeypatch):
    T = releaser()
    S = T.resume(saved)
    monkeypatch.setattr(files, "_VERSION", 99)
    S.save(saved)
    monkeypatch.undo()
    with pytest.raises(InvalidState, match="format version 99, this release reads"):
        T.resume(saved)


G3 = pf.Grid(3, 3)
OTHERS = {
    "epsilon": dict(epsilon=1.5),
    "mechanism": dict(mechanism="plm"),
    "calibration": dict(calibration="graph"),
    "repair": dict(repair="nearest"),
    "delta": dict(delta=0.1),
    "likelihood": dict(likelihood="density"),
    "budget": dict(budget=100.0),
    "policy": dict(graph=pf.blocks(G3, 3)),
    "an edge more": dict(graph=pf.blocks(G3, 2).with_edges([[0, 8]])),
    "model": dict(model=pf.MobilityModel(G3, transitions(9, seed=5))),
    "scale": dict(locations=pf.Grid(3, 3, cell_km=0.5)),
    "periods": dict(model=pf.MobilityModel(G3, np.stack([transitions(9)] * 2))),
}


@pytest.mark.parametrize("name", OTHERS)
def test_another_setting_is_refused(saved, name):
    before = saved.read_bytes()
    with pytest.raises(InvalidState, match="was saved under another policy, map, model or setting"):
        releaser(**OTHERS[name]).resume(saved)
    assert saved.read_bytes() == before


def test_probability_that_differs_by_one_bit(saved):
    A = transitions(9)
    row, to = np.argwhere(A > 0)[3]
    A[row, to] = np.nextafter(A[row, to], 1)
    with pytest.raises(InvalidState):
        releaser(model=pf.MobilityModel(G3, A)).resume(saved)


def test_same_things_made_anew_are_accepted(saved):
    """What counts is what they are, not which objects, nor the seed: the key is in the file."""
    for T in (releaser(), releaser(graph=pf.blocks(pf.Grid(3, 3), 2)), releaser(rng=5)):
        S = T.resume(saved, again=True)
        assert (S.t, S.users) == (2, 3)


def test_same_input_gives_the_same_output_again(saved):
    """Unseeded too: fed again after a crash, a stream leaks nothing more."""
    T = releaser()
    a, b = T.resume(saved), T.resume(saved, again=True)
    for cells in ([0, 5, 8], [1, 4, -1], [2, 2, 2]):
        assert a.step(cells).released.tolist() == b.step(cells).released.tolist()
    assert a.posterior(1).tobytes() == b.posterior(1).tobytes()


def test_streams_do_not_share_state_after_saving(saved):
    T = releaser()
    S = T.resume(saved)
    before = saved.read_bytes()
    S.step([1, 1, 1])
    assert saved.read_bytes() == before
    assert T.resume(saved, again=True).t == 2


def test_nothing_is_unpickled(tmp_path, monkeypatch):
    """A file with a right checksum but pickled objects inside is refused, not run."""
    import hashlib
    import io

    buffer = io.BytesIO()
    np.savez(buffer, facts=np.array([{"a": 1}], dtype=object))
    body = buffer.getvalue()
    (tmp_path / "evil").write_bytes(files._MAGIC + hashlib.sha256(body).digest() + body)
    with pytest.raises((PGLPError, ValueError)):
        releaser().resume(tmp_path / "evil")


def test_whatever_was_written_is_read(tmp_path):
    arrays = {
        "a": np.arange(5, dtype=np.int32),
        "b": np.empty((0, 2)),
        "c": np.array([1e-320, np.pi, -np.inf]),
        "d": np.array([], np.uint64),
    }
    facts = {"name": "Zürich 東京", "n": 3, "x": 0.1, "yes": True, "none": None}
    files.write_arrays(tmp_path / "f", "thing", arrays, facts)
    got, told = files.read_arrays(tmp_path / "f", "thing")
    assert {k: told[k] for k in facts} == facts
    assert got.keys() == arrays.keys()
    for name, array in arrays.items():
        assert got[name].dtype == array.dtype
        assert got[name].shape == array.shape
        assert got[name].tobytes() == array.tobytes()


def test_a_ledger_that_was_changed_is_refused(tmp_path):
    """A checksum can be made anew by whoever can write the file: nobody may earn a budget, or
    reach a kernel, that way."""
    g = pf.Grid(4, 4)
    T = pf.TraceReleaser(
        pf.blocks(g, 2), pf.MobilityModel.fit(g, [[0, 1]], unseen="neighbours8"), epsilon=1.0, rng=0
    )
    S = T.start(3)
    S.step([0, 5, 15]), S.step([1, 5, 14])
    path = tmp_path / "stream"
    S.save(path)
    arrays, facts = files.read_arrays(path, "stream")
    del facts["kind"], facts["version"]
    T.resume(path)
    for name, change in {
        "spent_releases": lambda a: a - 7,
        "beliefs_cells": lambda a: a + 100,
        "beliefs_start": lambda a: a[::-1].copy(),
        "kept_cells": lambda a: a - 100,
        "beliefs_kind": lambda a: a + 50,
        "ids": lambda a: np.zeros_like(a),
        "key": lambda a: a[:4],
    }.items():
        files.write_arrays(path, "stream", {**arrays, name: change(arrays[name])}, facts)
        with pytest.raises(InvalidState, match="contradicts itself"):
            T.resume(path)


def test_saving_does_not_expand_a_large_clique(tmp_path):
    g = pf.Grid(300, 300)
    T = pf.TraceReleaser(pf.complete(g), pf.MobilityModel.fit(g, [[0, 1]]), epsilon=1.0)
    T.start(2, "point").save(tmp_path / "stream")
    assert T.resume(tmp_path / "stream").users == 2
    assert "_csr" not in T.graph.__dict__


def test_a_file_is_resumed_once_unless_asked_again(saved):
    """Two streams that go on from one file would release two inputs with one noise."""
    T = releaser()
    S = T.resume(saved)
    with pytest.raises(pf.InvalidState, match=r"was resumed before.*again=True"):
        T.resume(saved)
    S.step([1, 1, 1])
    S.save(saved)
    assert T.resume(saved).t == 3


def test_a_forked_stream_refuses_to_go_on(monkeypatch):
    """The child has the same key and the same t: its noise would serve two inputs."""
    S = releaser().start(3)
    S.step([0, 1, 2])
    monkeypatch.setattr("os.getpid", lambda: -1)
    with pytest.raises(pf.InvalidState, match="forked"):
        S.step([0, 1, 2])
    monkeypatch.undo()
    assert S.t == 1


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("beliefs_values", lambda a: np.full_like(a, np.nan)),
        ("beliefs_cells", lambda a: a[::-1].copy()),
        ("beliefs_at", lambda a: a + 10),
        ("spent_releases", lambda a: a - a),
        ("ids", lambda a: -a - 1),
        ("kept_cells", lambda a: a + 100),
        ("cycle", lambda a: a + 7),
        ("key", lambda a: a + 1),
    ],
)
def test_forged_streams_are_refused(saved, name, change):
    """With a right checksum: every array is sealed with the stream's key, and looked at besides."""
    arrays, facts = files.read_arrays(saved, "stream")
    arrays[name] = change(arrays[name])
    files.write_arrays(saved, "stream", arrays, facts)
    with pytest.raises(pf.InvalidState, match="contradicts itself"):
        releaser().resume(saved)
    if name not in ("key", "spent_releases"):  # sealed again, what it says is still impossible
        facts["seal"] = stream_file._seal(arrays, facts)
        files.write_arrays(saved, "stream", arrays, facts)
        with pytest.raises(pf.InvalidState, match="contradicts itself"):
            releaser().resume(saved)


def test_streams_without_their_arrays_are_refused(saved):
    arrays, facts = files.read_arrays(saved, "stream")
    for name in arrays:
        files.write_arrays(saved, "stream", {k: v for k, v in arrays.items() if k != name}, facts)
        with pytest.raises(pf.InvalidState, match="contradicts itself"):
            releaser().resume(saved)


def small_releaser(**more):
    g = pf.Grid(3, 4)
    M = pf.MobilityModel(g, np.full((12, 12), 1 / 12))
    return pf.TraceReleaser(pf.blocks(g, 2), M, epsilon=1.0, **more)


def test_a_stream_is_not_copied():
    """A copy would have the same noise, and a budget of its own."""
    S = small_releaser().start(users=2)
    for way in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(InvalidState, match="cannot be copied or pickled"):
            way(S)


@pytest.mark.skipif(os.name == "nt", reason="links of POSIX")
def test_links_lead_to_the_same_budget_and_the_same_noise(tmp_path):
    """By whatever name a file is called: a budget is kept in it, and it is resumed once."""
    T, real, link = small_releaser(budget=4), tmp_path / "real", tmp_path / "link"
    link.symlink_to(real)
    x = [[0, 1]]
    T.run(x, ledger=real), T.run(x, ledger=link)
    assert link.is_symlink()
    for name in (real, link):
        with pytest.raises(pf.BudgetExceeded):
            T.run(x, ledger=name)
    saved, other = tmp_path / "saved", tmp_path / "other"
    other.symlink_to(saved)
    T.start(users=2).save(saved)
    T.resume(other)
    with pytest.raises(InvalidState, match="was resumed before"):
        T.resume(saved)

"""Files that the command line reads beside the table, damaged in every way: one message, code 2."""

import gzip
import io

import numpy as np
import pytest
from scipy import sparse

from cases import npy
from cli_tools import MAP, run, trips


def npz(matrix):
    buffer = io.BytesIO()
    sparse.save_npz(buffer, matrix)
    return buffer.getvalue()


def other_shape():
    matrix = sparse.csr_array((9, 9))
    matrix.indices, matrix.data = np.array([2**30], np.int32), np.ones(1)
    matrix.indptr = np.array([0] + [1] * 9, np.int32)
    return matrix


ZIPPED = gzip.compress(b"cell,category\n" + b"1,a\n" * 100)
EDGES = {
    "e.csv": [b"", b"\0\0", b"a\nb\n", b"1\n", b"1,2\n3\n", b"1,2\n1,999999\n", ZIPPED[:40],
              b"1,2\n" + b"9" * 5000 + b",1\n", b"1,2\n1," + b"x" * 200_000],
    "e.npy": [b"", b"junk", npy(np.arange(8))[:-4], npy(np.array([{}], object)), npy(np.zeros(3)),
              npy(np.array([[0, 1 << 40]])), npy(np.array([[0.0, np.nan]])),
              npy(np.ones((2, 2), "M8[s]"))],
    "e.npz": [b"", b"junk", npz(sparse.eye_array(3))[:60], npz(sparse.eye_array(3)),
              npz(other_shape())],
}  # fmt: skip
LABELS = {
    "l.csv": [b"", b"\0", b"cell\n1\n", b"cell,category\n", b"cell,category\nx,a\n", ZIPPED[:40],
              b"cell,category\n1\n", b"cell,category\n" + b"9" * 5000 + b",a\n",
              b"\x1f\x8b\x08junk",
              b"lat,lon,category\nnan,inf,a\n", b'cell,category\n1,"' + b"x" * 200_000],
    "l.parquet": [b"", b"PAR1junkPAR1", b"junk"],
}  # fmt: skip
CONFIGS = [
    b"\xff\xfe", b"epsilon = ", b"[epsilon]\n", b"epsilon = [[1]]\n", b"epsilon = 1979-05-27\n",
    b"columns = {time = [1, [2]]}\n", b"columns = {time = {a = 1}}\n", b"\0", b"[[" * 2000,
    b"epsilon = " + b"9" * 5000, b"nothing = 1\n", b"epsilon = true\n",
]  # fmt: skip


def refused(capsys, *arguments):
    capsys.readouterr()
    run(*arguments, code=2)
    said = capsys.readouterr().err
    assert said.startswith(("pglp-fast: ", "usage: ")) and "Traceback" not in said
    return said


def cases(files):
    return [(name, k) for name, bodies in files.items() for k in range(len(bodies))]


@pytest.mark.parametrize(("name", "k"), cases(EDGES))
def test_damaged_edges(tmp_path, monkeypatch, capsys, name, k):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(EDGES[name][k])
    refused(capsys, "certify", "--epsilon", 1, "--policy", f"edges:{name}", *MAP)


@pytest.mark.parametrize(("name", "k"), cases(LABELS))
def test_damaged_labels(tmp_path, monkeypatch, capsys, name, k):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(LABELS[name][k])
    said = refused(
        capsys, "certify", "--epsilon", 1, "--policy", "categories:3", "--labels", name, *MAP
    )
    assert name in said


@pytest.mark.parametrize("k", range(len(CONFIGS)))
def test_damaged_config(tmp_path, monkeypatch, capsys, k):
    monkeypatch.chdir(tmp_path)
    trips(tmp_path / "t.csv", n=3)
    (tmp_path / "job.toml").write_bytes(CONFIGS[k])
    refused(capsys, "release", "t.csv", "-o", "out.csv", "--config", "job.toml")
    assert not (tmp_path / "out.csv").exists()

"""Files that are whole or not there."""

import os
import re
import stat
import subprocess
import sys

import pytest

from cases import ROOT, mode
from pglp_fast._util.json_values import plain
from pglp_fast._util.storage import SECRET, file_digest, replacing
from pglp_fast.errors import InvalidParameter, InvalidState


def test_a_file_takes_its_place_when_it_is_whole(tmp_path):
    """The old one is there until then, and nothing is left lying about."""
    out = tmp_path / "a.txt"
    out.write_text("old")
    with replacing(out) as beside:
        assert beside.parent == out.parent and beside.suffix == ".txt"
        beside.write_text("new")
        assert out.read_text() == "old"
    assert out.read_text() == "new" and os.listdir(tmp_path) == ["a.txt"]
    assert file_digest(out) == "11507a0e2f5e69d5dfa40a62a1bd7b6ee57e6bcd85c67c9b8431b36fff21c437"


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_failure_changes_nothing(tmp_path, error):
    out = tmp_path / "a.txt"
    out.write_text("old")
    with pytest.raises(error), replacing(out) as beside:
        beside.write_text("half")
        raise error
    assert out.read_text() == "old" and os.listdir(tmp_path) == ["a.txt"]


def test_a_secret_is_its_owners_alone_from_the_first_byte(tmp_path):
    """Would catch a file that is written for all to read and locked afterwards."""
    old = os.umask(0)
    try:
        with replacing(tmp_path / "key", SECRET) as beside:
            assert mode(beside) == 0o600
        with replacing(tmp_path / "open") as beside:
            assert mode(beside) == 0o666
    finally:
        os.umask(old)
    assert mode(tmp_path / "key") == 0o600 and mode(tmp_path / "open") == 0o666


def test_bytes_are_on_disk_before_the_name_is(tmp_path, monkeypatch):
    """The file is synced, then renamed, then its folder is synced."""
    done = []
    fsync, rename = os.fsync, os.replace

    def kind(handle):
        return "folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file"

    monkeypatch.setattr(os, "fsync", lambda h: (done.append(kind(h)), fsync(h)))
    monkeypatch.setattr(os, "replace", lambda a, b: (done.append("name"), rename(a, b)))
    with replacing(tmp_path / "a") as beside:
        beside.write_bytes(b"x")
    assert done == ["file", "name", "folder"]


def test_what_json_takes():
    import numpy as np

    given = {1: np.arange(2), "a": (np.nan, np.float32(0.5)), "b": [np.inf, None, True], "c": 1j}
    assert plain(given) == {"1": [0, 1], "a": [None, 0.5], "b": [None, None, True], "c": "1j"}


# -- what may be replaced, and what is swept up


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes")
def test_folders_pipes_sockets_and_devices_are_not_replaced(tmp_path, monkeypatch):
    import socket

    monkeypatch.chdir(tmp_path)  # names of sockets are short
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        (tmp_path / "link").symlink_to("/dev/null")
        for name, what in (
            ("folder", "is a folder"),
            ("pipe", "is a device, a pipe or a socket"),
            ("socket", "is a device, a pipe or a socket"),
            ("/dev/null", "is a device, a pipe or a socket"),
            ("link", "is a device, a pipe or a socket"),
        ):
            with pytest.raises(InvalidParameter, match=what), replacing(name):
                pass
    assert sorted(os.listdir()) == ["folder", "link", "pipe", "socket"]


@pytest.mark.parametrize("path", [None, 3, b"x", "a\0b"])
def test_what_is_no_name(path):
    with pytest.raises(InvalidParameter), replacing(path):
        pass


KILLED = """
import os, sys
from pglp_fast._util.storage import replacing
with replacing(sys.argv[1]) as beside:
    beside.write_text("half")
    print(beside, flush=True)
    if sys.argv[2] == "dies":
        os._exit(9)
    sys.stdin.read()
"""


def start_save(path, how):
    return subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path), how],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.skipif(sys.platform == "win32", reason="no locks")
def test_what_a_killed_save_left_is_swept_up_and_a_living_one_is_left_alone(tmp_path):
    out = tmp_path / "model.npz"
    others = [".model.npz", ".model.abcdef0123456789.part", ".other.abcdef0123456789.part.npz"]
    for name in others:
        (tmp_path / name).write_text("not of this target")
    (tmp_path / ".model.0123456789abcdef.part.npz").symlink_to(tmp_path / others[0])
    with start_save(out, "dies") as dead, start_save(out, "lives") as alive:
        left, written = dead.stdout.readline().strip(), alive.stdout.readline().strip()
        assert dead.wait(60) == 9
        (tmp_path / "model.npz").write_text("old")
        with replacing(out) as beside:
            beside.write_text("new")
        names = os.listdir(tmp_path)
        assert os.path.basename(left) not in names and os.path.basename(written) in names
        alive.stdin.close()
        assert alive.wait(60) == 0
    assert out.read_text() == "half"
    link = ".model.0123456789abcdef.part.npz"
    assert sorted(os.listdir(tmp_path)) == sorted([*others, link, "model.npz"])


def test_names_beside_a_long_name_fit(tmp_path):
    out = tmp_path / ("a" * 250)
    with replacing(out) as beside:
        beside.write_text("x")
    assert out.read_text() == "x"


def test_a_file_that_was_swapped_is_not_published(tmp_path):
    """Somebody who may write to the folder puts a link in place of what is written."""
    (tmp_path / "theirs").write_text("theirs")
    with pytest.raises(InvalidState, match="was replaced"), replacing(tmp_path / "a") as beside:
        beside.unlink()
        beside.symlink_to(tmp_path / "theirs")
    assert os.listdir(tmp_path) == ["theirs"]


def test_every_file_is_written_by_the_one_writer():
    """Nothing in the package opens a file to write but through ``_util.storage``."""
    writes = re.compile(
        r"""write_text\(|write_bytes\(|savefig\(|to_csv\(|np\.savez?\(|os\.replace\(|os\.rename\("""
        r"""|open\([^)\n]*["'][wax]b?["']|mkstemp|NamedTemporaryFile"""
    )
    found = set()
    for path in sorted((ROOT / "pglp_fast").rglob("*.py")):
        text = path.read_text()
        through = "replacing(" in text or "atomic(" in text
        if writes.search(text) and not through:
            found.add(path.relative_to(ROOT / "pglp_fast").as_posix())
    # compiled kernels are renamed into place by jit itself: kernels import nothing of _util; warmup
    # writes to a temporary folder, text_rows and geo_write to what sink, convert and geo_files
    # replace
    known = {"_kernels/base/jit.py", "cli/warmup.py", "pipeline/text_rows.py", "io/geo_write.py"}
    assert found <= known


@pytest.mark.skipif(sys.platform == "win32", reason="no locks")
def test_without_locks_nothing_is_swept_up(tmp_path, monkeypatch):
    """Who knows whether whoever writes that file is alive."""
    import fcntl

    def refuse(*_):
        raise OSError(95, "not supported")

    monkeypatch.setattr(fcntl, "flock", refuse)
    (tmp_path / ".a.0123456789abcdef.part.txt").write_text("of another process")
    with replacing(tmp_path / "a.txt") as beside:
        beside.write_text("new")
    assert sorted(os.listdir(tmp_path)) == [".a.0123456789abcdef.part.txt", "a.txt"]

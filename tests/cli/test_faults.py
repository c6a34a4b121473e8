"""``pglp-fast release`` when it is killed, interrupted, out of disk, or not alone: what was drawn
is drawn again, and no output is ever partial.

PGLP_KILLS=1000 pytest tests/cli/test_faults.py kills it more often.
"""

import contextlib
import os
import shutil
import signal
import sys
import time

import numpy as np
import pytest

from cases import large
from cli_tools import MAP, run, trips
from faults import command, ended, stopped

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="forks and signals of POSIX"),
    large,
]
KILLS = int(os.environ.get("PGLP_KILLS", 8))
JOB = [
    "release", "t.csv", "--epsilon", "1", "--policy", "blocks:3", *MAP, "--batch-rows", 50,
]  # fmt: skip


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """A table; the outputs of jobs that nobody disturbs, by their seeds; how long one takes."""
    folder, outputs = tmp_path_factory.mktemp("undisturbed"), {}
    table = trips(folder / "t.csv", 2000)
    for seed in (3, 4):
        began = time.monotonic()
        with contextlib.chdir(folder):
            run(*JOB, "--seed", seed, "-o", f"o{seed}.csv")
        outputs[seed] = (folder / f"o{seed}.csv").read_bytes()
    return table, outputs, time.monotonic() - began


@pytest.fixture
def whole(undisturbed, tmp_path, monkeypatch):
    """What must come out, by the seed, and how long that takes."""
    table, outputs, seconds = undisturbed
    shutil.copy(table, tmp_path)
    monkeypatch.chdir(tmp_path)
    return outputs, seconds


def left(tmp_path):
    return sorted(p.name for p in tmp_path.iterdir() if p.name.startswith(("o.", ".o.")))


def go_on(tmp_path):
    """The arguments with which a user starts again what was stopped."""
    begun = (tmp_path / "o.csv.work").exists()
    return [*JOB, "--seed", 3, "-o", "o.csv", *(["--resume"] if begun else [])]


def test_killed_at_any_moment(tmp_path, whole):
    """Started again until it comes through, it ends as if nothing had been."""
    whole, seconds = whole
    rng = np.random.default_rng(1)
    kills = 0
    while kills < KILLS:
        code, wait = -signal.SIGKILL, seconds
        while code == -signal.SIGKILL:
            code = stopped(command(*go_on(tmp_path)), rng.uniform(0, wait))
            kills += code != 0
            wait *= 1.3  # however slow the machine became, it comes through
            assert wait < 60 + 100 * seconds, "it waits for what a killed one had"
            if code == -signal.SIGKILL:
                out = tmp_path / "o.csv"
                assert not out.exists() or out.read_bytes() == whole[3]
        # killed when all was done but for removing the empty folder: it says that it is complete
        assert code == 0 or (code == 2 and kills)
        assert (tmp_path / "o.csv").read_bytes() == whole[3]
        assert left(tmp_path) == ["o.csv", "o.csv.json"]
        for name in left(tmp_path):
            (tmp_path / name).unlink()


def test_interrupted(tmp_path, whole):
    """Ctrl-C ends it with code 130 and without an output."""
    whole, seconds = whole
    for part in (0.3, 0.6):
        code = stopped(command(*go_on(tmp_path)), part * seconds, signal.SIGINT)
        assert code in (130, 0)
        assert (tmp_path / "o.csv").exists() == (code == 0)
        if code == 0:
            break
    if code:
        assert ended(command(*go_on(tmp_path))) == 0
    assert (tmp_path / "o.csv").read_bytes() == whole[3]


@pytest.mark.parametrize("share", [0.02, 0.4, 0.98])
def test_a_disk_that_becomes_full(tmp_path, whole, share):
    """It says so, and leaves no partial output; with room again it goes on."""
    whole, _ = whole
    code = ended(command(*go_on(tmp_path), limit=int(share * len(whole[3]))))
    assert code in (1, 2)
    assert not (tmp_path / "o.csv").exists()
    assert ended(command(*go_on(tmp_path))) == 0
    assert (tmp_path / "o.csv").read_bytes() == whole[3]


def test_two_on_one_output(tmp_path, whole):
    """With --force both: one that answers 0 has written the whole output, and nobody deletes the
    other's work."""
    whole, _ = whole
    for _ in range(4):
        children = {seed: command(*JOB, "--seed", seed, "-o", "o.csv", "--force") for seed in whole}
        codes = {seed: ended(child) for seed, child in children.items()}
        through = [seed for seed, code in codes.items() if code == 0]
        assert through and set(codes.values()) <= {0, 2}
        assert (tmp_path / "o.csv").read_bytes() in [whole[seed] for seed in through]
        assert left(tmp_path) == ["o.csv", "o.csv.json"]

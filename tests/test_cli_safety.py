"""``pglp-fast release`` and files: nothing finished, given or foreign is ever lost, and every way into trouble has one out."""

import gzip
import os
import stat
import subprocess
import sys

import pytest

import pglp_fast as pf
from cli_tools import MAP, answer, read, real_process, run, trips
from pglp_fast.cli import journal as journals
from pglp_fast.cli import releasing, tables

posix = pytest.mark.skipif(sys.platform == "win32", reason="permissions, pipes and locks of POSIX")
JOB = ["release", "t.csv", "--epsilon", "1", "--policy", "blocks:3", *MAP, "--batch-rows", 20, "--seed", 3]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def table(tmp_path):
    trips(tmp_path / "t.csv", 100)
    return tmp_path / "t.csv"


def left(tmp_path):
    return sorted(p.name for p in tmp_path.iterdir() if p.suffix in (".part", ".journal", ".steps"))


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def stopped(patch, *arguments, after=3):
    """A job that stops before so many batches and one are written."""
    with patch.context() as context:
        write, count = tables.TextWriter.write, [0]

        def stop(self, batch, added):
            if count[0] == after:
                raise KeyboardInterrupt
            count[0] += 1
            write(self, batch, added)

        context.setattr(tables.TextWriter, "write", stop)
        run(*arguments, code=130)


def stopped_at_the_end(patch, *arguments, replaced):
    """A job that stops just before or after the output takes its place."""
    with patch.context() as context:
        replace = os.replace

        def stop(a, b):
            if replaced:
                replace(a, b)
            raise KeyboardInterrupt

        context.setattr(releasing.os, "replace", stop)
        run(*arguments, code=130)


# -- going on


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet"])
@pytest.mark.parametrize("force", [[], ["--force"]])
def test_a_finished_output_is_recognised(tmp_path, table, monkeypatch, capsys, kind, force):
    """Stopped between the replacement and the removal of the journal. Would catch rows skipped as done although nothing of them
    is in the new part: an output without rows in place of a whole one."""
    job = JOB
    if kind == "parquet":
        import pyarrow.csv
        import pyarrow.parquet as pq

        pq.write_table(pyarrow.csv.read_csv("t.csv"), "t.parquet")
        job = [JOB[0], "t.parquet", *JOB[2:]]
    whole = answer(capsys, *job, "-o", f"whole.{kind}")
    out = tmp_path / f"o.{kind}"
    stopped_at_the_end(monkeypatch, *job, "-o", out.name, *force, replaced=True)
    assert out.read_bytes() == (tmp_path / f"whole.{kind}").read_bytes()
    assert left(tmp_path) == [f"o.{kind}.journal"]
    before = out.stat()
    assert answer(capsys, *job, "-o", out.name, "--resume") == {**whole, "output": out.name}
    assert (out.stat().st_ino, out.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert left(tmp_path) == []


def test_it_says_that_it_was_finished(tmp_path, table, monkeypatch, capsys):
    stopped_at_the_end(monkeypatch, *JOB, "-o", "o.csv", replaced=True)
    capsys.readouterr()
    run(*JOB, "-o", "o.csv", "--resume")
    assert "o.csv is complete: the job had ended but for its journal" in capsys.readouterr().err


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_stopped_before_the_replacement_it_goes_on(tmp_path, table, monkeypatch, force):
    run(*JOB, "-o", "whole.csv")
    if force:
        (tmp_path / "o.csv").write_text("old")
    stopped_at_the_end(monkeypatch, *JOB, "-o", "o.csv", *force, replaced=False)
    run(*JOB, "-o", "o.csv", "--resume")
    assert (tmp_path / "o.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert left(tmp_path) == []


def test_a_finished_output_that_was_changed_is_not_overwritten(tmp_path, table, monkeypatch, capsys):
    stopped_at_the_end(monkeypatch, *JOB, "-o", "o.csv", "--force", replaced=True)
    (tmp_path / "o.csv").write_text("edited by hand")
    run(*JOB, "-o", "o.csv", "--resume", code=2)
    assert "no longer what the job wrote: move it away" in capsys.readouterr().err
    assert (tmp_path / "o.csv").read_text() == "edited by hand"
    (tmp_path / "o.csv").unlink()
    run(*JOB, "-o", "o.csv", "--resume")
    assert len(read(tmp_path / "o.csv")) == 100


@pytest.mark.parametrize("kind", ["csv", "csv.gz"])
@pytest.mark.parametrize("left_of_it", [None, 0, 10, 0.5, 0.99])
def test_a_part_that_is_gone_or_shorter_is_taken_up_where_it_ends(tmp_path, table, monkeypatch, kind, left_of_it):
    """Would catch lost rows, and files padded with NULs up to the recorded size; twice, since a job may be stopped again."""
    run(*JOB, "-o", f"whole.{kind}")
    out = tmp_path / f"o.{kind}"
    part = journals.part_of(out)
    stopped(monkeypatch, *JOB, "-o", out.name, after=4)
    for again in (True, False):
        if left_of_it is None:
            part.unlink()
        else:
            size = part.stat().st_size
            os.truncate(part, int(left_of_it * size) if isinstance(left_of_it, float) else left_of_it)
        if again:
            stopped(monkeypatch, *JOB, "-o", out.name, "--resume", after=1)
    run(*JOB, "-o", out.name, "--resume")
    assert out.read_bytes() == (tmp_path / f"whole.{kind}").read_bytes()
    assert left(tmp_path) == []


@pytest.mark.parametrize("damage", ["gone", "empty", "cut", "other"])
def test_steps_that_are_gone_or_damaged_are_drawn_again(tmp_path, monkeypatch, damage):
    """By the same key: the output is that of a run without interruption. Would catch a traceback, or foreign bytes as cells."""
    trips(tmp_path / "history.csv", 300, users=5)
    trips(tmp_path / "t.csv", 200, users=8, seed=4)
    run("fit", "history.csv", "-o", "model.npz", *MAP, "--step", "5min")
    job = ["release", "t.csv", "--epsilon", "1", "--policy", "blocks:3", "--mobility", "model.npz", "--batch-rows", 20]
    job += ["--seed", 3]
    run(*job, "-o", "whole.csv")
    original, runs = pf.TraceReleaser.run, []

    def third(self, *arguments, **options):
        runs.append(1)
        if len(runs) == 4:
            raise KeyboardInterrupt
        return original(self, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(pf.TraceReleaser, "run", third)
        run(*job, "-o", "o.csv", code=130)
    steps = journals.steps_of(tmp_path / "o.csv")
    size = steps.stat().st_size
    assert size > 20
    if damage == "gone":
        steps.unlink()
    elif damage == "other":
        steps.write_bytes(b"\x7f" * size)
    else:
        os.truncate(steps, 0 if damage == "empty" else size - 3)
    run(*job, "-o", "o.csv", "--resume")
    assert (tmp_path / "o.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert left(tmp_path) == []


@pytest.mark.parametrize("text", [b"", b"\0" * 400, b'{"kind": "pglp_fast rel', b"[1]\n", b"notes of mine\n", b'{"kind": 1}\n'])
def test_a_journal_that_says_nothing_has_one_way_out(tmp_path, table, capsys, text):
    """Would catch a rerun that recommends --resume, which recommends something else."""
    (tmp_path / "o.csv.journal").write_bytes(text)
    for more in ([], ["--resume"]):
        run(*JOB, "-o", "o.csv", *more, code=2)
        assert "--force, without --resume, removes it and starts anew" in capsys.readouterr().err
    assert (tmp_path / "o.csv.journal").read_bytes() == text
    run(*JOB, "-o", "o.csv", "--force")
    assert len(read(tmp_path / "o.csv")) == 100 and left(tmp_path) == []


def test_a_disk_that_is_full_at_the_start_leaves_no_journal(tmp_path, table, monkeypatch):
    def full(self, what):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(journals.Journal, "_write", full)
        run(*JOB, "-o", "o.csv", code=2)
    assert left(tmp_path) == []


def test_what_is_no_journal_file_is_told(tmp_path, table, capsys):
    (tmp_path / "o.csv.journal").mkdir()
    run(*JOB, "-o", "o.csv", "--force", code=2)
    assert "is not a file: move it away" in capsys.readouterr().err
    run(*JOB, "-o", "t.csv/o.csv", code=2)
    assert "t.csv is not a folder" in capsys.readouterr().err


@posix
def test_a_running_job_is_not_called_interrupted(tmp_path, table, capsys):
    held = journals.Journal.start(tmp_path / "o.csv", "job", 1, False)
    for more in ([], ["--resume"], ["--force"], ["--force", "--resume"]):
        run(*JOB, "-o", "o.csv", *more, code=2)
        err = capsys.readouterr().err
        assert "another process is releasing" in err and "interrupted" not in err
    held.close(finished=True)


# -- files of others


@pytest.mark.parametrize("end", ["part", "steps"])
def test_files_of_others_are_left_alone(tmp_path, table, capsys, end):
    stranger = tmp_path / f"o.csv.{end}"
    stranger.write_text("dear")
    for more in ([], ["--resume"]):
        run(*JOB, "-o", "o.csv", *more, code=2)
        assert "is in the way, and no journal says" in capsys.readouterr().err
        assert stranger.read_text() == "dear" and not (tmp_path / "o.csv").exists()
    run(*JOB, "-o", "o.csv", "--force")
    assert left(tmp_path) == [] and len(read(tmp_path / "o.csv")) == 100


@posix
@pytest.mark.parametrize("end", ["", ".part", ".steps", ".journal"])
@pytest.mark.parametrize("which", ["table", "labels", "edges", "config", "model", "linked"])
def test_nothing_that_is_read_is_written(tmp_path, table, capsys, end, which):
    """Whatever name it has, also by a link; with --force, too. Would catch an input that is deleted as the output's part."""
    given = tmp_path / f"o.csv{end}"
    job = ["release", "t.csv", "--epsilon", "1", *MAP, "-o", "o.csv", "--force", "--policy"]
    if which in ("table", "linked"):
        table.rename(given)
        job += ["blocks:3"]
        if which == "linked":
            table.symlink_to(given)
        else:
            job[1] = given.name
    elif which == "labels":
        given.write_text("lat,lon,category\n35.7,139.62,a\n")
        job += ["categories:1", "--labels", given.name]
    elif which == "edges":
        given.write_text("0,1\n")
        job += [f"edges:{given.name}"]
    elif which == "model":
        given.write_text("not looked into")
        job += ["blocks:3", "--mobility", given.name]
    else:
        given.write_text("epsilon = 1.0\n")
        job += ["blocks:3", "--config", given.name]
    before = given.read_bytes()
    run(*job, code=2)
    assert given.read_bytes() == before
    assert "is the input: name another output" in capsys.readouterr().err


# -- who may read it


@posix
@pytest.mark.parametrize("given", [0o644, 0o640, 0o600, 0o400])
def test_true_places_are_readable_by_their_owner_alone(tmp_path, table, monkeypatch, given):
    """The output, no wider than the input, and the part while the job runs."""
    table.chmod(given)
    stopped(monkeypatch, *JOB, "-o", "o.csv")
    assert mode(tmp_path / "o.csv.part") == 0o600
    run(*JOB, "-o", "o.csv", "--resume")
    assert mode(tmp_path / "o.csv") == 0o600 & given


@posix
@pytest.mark.parametrize(
    ("old", "drop", "new"), [(None, True, 0o644), (0o600, True, 0o600), (0o644, False, 0o600), (0o440, True, 0o440)]
)
def test_what_is_replaced_never_becomes_more_open(tmp_path, table, old, drop, new):
    out = tmp_path / "o.csv"
    if old is not None:
        out.write_text("old")
        out.chmod(old)
    mask = os.umask(0o022)
    try:
        run(*JOB, "-o", "o.csv", "--force", *(["--drop-true"] if drop else []))
    finally:
        os.umask(mask)
    assert mode(out) == new


# -- outputs and inputs that are no plain files


@posix
def test_an_output_that_is_a_link_stays_one(tmp_path, table, capsys):
    (tmp_path / "far").mkdir()
    (tmp_path / "o.csv").symlink_to("far/real.csv")
    run(*JOB, "-o", "o.csv")  # a link to nothing: a new file where it leads
    assert (tmp_path / "o.csv").is_symlink() and len(read(tmp_path / "far" / "real.csv")) == 100
    run(*JOB, "-o", "o.csv", code=2)
    assert "--force overwrites it" in capsys.readouterr().err
    (tmp_path / "far" / "real.csv").write_text("old")
    run(*JOB, "-o", "o.csv", "--force")
    assert (tmp_path / "o.csv").is_symlink() and len(read(tmp_path / "far" / "real.csv")) == 100
    assert sorted(p.name for p in (tmp_path / "far").iterdir()) == ["real.csv"] and left(tmp_path) == []
    (tmp_path / "a.csv").symlink_to("b.csv")
    (tmp_path / "b.csv").symlink_to("a.csv")
    run(*JOB, "-o", "a.csv", code=2)
    assert "leads in a circle" in capsys.readouterr().err


@posix
@pytest.mark.parametrize("force", [[], ["--force"]])
def test_pipes_and_devices_are_no_outputs(tmp_path, table, capsys, force):
    """Would catch a device that is replaced by a file."""
    os.mkfifo("pipe.csv")
    (tmp_path / "null.csv").symlink_to("/dev/null")
    for out in ("pipe.csv", "null.csv", "/dev/null"):
        run(*JOB, "-o", out, *force, code=2)
        assert "is a pipe or a device: name a file with -o" in capsys.readouterr().err
    assert stat.S_ISFIFO(os.stat("pipe.csv").st_mode)


@posix
def test_pipes_are_no_inputs(tmp_path, table, capsys):
    """Would catch a job that waits for ever, or reads a pipe once and finds nothing the second time."""
    os.mkfifo("pipe.csv")
    for given in ("-", "pipe.csv"):
        run("release", given, *JOB[2:], "-o", "o.csv", code=2)
        assert "a file is needed: it is read more than once" in capsys.readouterr().err
    run(*JOB[:4], "--policy", "categories:1", "--labels", "pipe.csv", *MAP, "-o", "o.csv", code=2)
    assert "pipe.csv is a pipe or a device, and a file is needed" in capsys.readouterr().err
    run(*JOB, "-o", "-", code=2)
    assert "a file is needed" in capsys.readouterr().err and not (tmp_path / "-").exists()
    command, env = real_process()
    job = [*command, "release", "/dev/stdin", *map(str, JOB[2:]), "-o", "o.csv"]
    done = subprocess.run(job, input=table.read_bytes(), env=env, capture_output=True)
    assert done.returncode == 2 and b"a file is needed" in done.stderr
    assert left(tmp_path) == [] and not (tmp_path / "o.csv").exists()


# -- text


@pytest.mark.parametrize("prefix", ["a,", 'a"', "a\n", "a\r", "a\0"])
def test_a_prefix_cannot_break_the_header(tmp_path, table, capsys, prefix):
    run(*JOB, "-o", "o.csv", "--prefix", prefix, code=2)
    assert "--prefix" in capsys.readouterr().err
    assert not (tmp_path / "o.csv").exists()


def test_a_prefix_may_have_what_is_no_delimiter_here(tmp_path, table):
    run(*JOB, "-o", "o.csv", "--prefix", "a;")
    assert "a;lat" in read(tmp_path / "o.csv")[0]


@pytest.mark.parametrize("command", ["release", "fit"])
def test_lines_that_end_with_a_return_alone_are_told(tmp_path, table, capsys, command):
    table.write_bytes(table.read_bytes().replace(b"\n", b"\r"))
    job = JOB if command == "release" else ["fit", "t.csv", *MAP]
    run(*job, "-o", "o.csv", code=2)
    err = capsys.readouterr().err
    assert err.startswith("pglp-fast: ") and err.count("\n") == 1
    assert "t.csv" in err and "CR" in err


@pytest.mark.parametrize("damage", ["cut", "cut early", "sum", "junk"])
@pytest.mark.parametrize("rows", [20, 5000])
def test_zipped_files_that_are_damaged_are_named(tmp_path, capsys, damage, rows):
    trips(tmp_path / "t.csv", rows)
    raw = bytearray(gzip.compress((tmp_path / "t.csv").read_bytes()))
    if damage == "sum":
        raw[-6] ^= 1
    elif damage == "junk":
        raw[len(raw) // 2 : len(raw) // 2 + 20] = bytes(20)
    else:
        del raw[len(raw) // 2 if damage == "cut" else 5 :]
    (tmp_path / "t.csv.gz").write_bytes(raw)
    run("release", "t.csv.gz", *JOB[2:], "-o", "o.csv", code=2)
    err = capsys.readouterr().err
    assert err.startswith("pglp-fast: ") and err.count("\n") == 1 and "t.csv.gz" in err
    assert left(tmp_path) == [] and not (tmp_path / "o.csv").exists()


def test_parquet_that_is_damaged_is_named(tmp_path, table, capsys):
    import pyarrow.csv
    import pyarrow.parquet as pq

    pq.write_table(pyarrow.csv.read_csv("t.csv"), "t.parquet", compression="snappy", use_dictionary=False)
    raw = (tmp_path / "t.parquet").read_bytes()
    for at in range(4, 404, 40):
        (tmp_path / "t.parquet").write_bytes(raw[:at] + b"\xff" * 200 + raw[at + 200 :])
        run("release", "t.parquet", *JOB[2:], "-o", "o.parquet", code=2)
        err = capsys.readouterr().err
        assert err.startswith("pglp-fast: ") and err.count("\n") == 1 and "t.parquet" in err
        assert left(tmp_path) == [] and not (tmp_path / "o.parquet").exists()


@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("ending", ["\r\n", "\n"])
@pytest.mark.parametrize("bad", [False, True])
def test_a_last_line_without_an_end_gets_that_of_the_others(tmp_path, header, ending, bad):
    rows = [f"u{k},1760000000,35.70,139.62" for k in range(5)] + (["broken"] if bad else [])
    text = ending.join((["user,time,lat,lon"] if header else []) + rows)
    (tmp_path / "t.csv").write_text(text, newline="")
    names = [] if header else ["--names", "user,time,lat,lon"]
    run(*JOB[:-4], "-o", "o.csv", "--batch-rows", 2, "--on-error", "skip", *names)
    new = (tmp_path / "o.csv").read_bytes()
    assert new.endswith(ending.encode())
    assert new.count(b"\n") == len(rows) + header
    assert new.count(b"\r") == (len(rows) + header if ending == "\r\n" else 0)

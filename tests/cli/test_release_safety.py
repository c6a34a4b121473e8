"""``pglp-fast release`` and files: nothing finished, given or foreign is ever lost, and every
way into trouble has one out."""

import gzip
import os
import shutil
import stat
import subprocess
import sys

import pytest

from cases import mode
from cli_tools import MAP, answer, read, real_process, run, trips
from pglp_fast.pipeline import sink, trace_releases, work_folder
from pglp_fast.pipeline.work_folder import Job, work_of

pytestmark = pytest.mark.usefixtures("here")

posix = pytest.mark.skipif(sys.platform == "win32", reason="permissions, pipes and locks of POSIX")
JOB = [
    "release",
    "t.csv",
    "--epsilon",
    "1",
    "--policy",
    "blocks:3",
    *MAP,
    "--batch-rows",
    20,
    "--seed",
    3,
]


@pytest.fixture
def table(tmp_path):
    trips(tmp_path / "t.csv", 100)
    return tmp_path / "t.csv"


def left(tmp_path):
    return sorted(p.name for p in tmp_path.iterdir() if p.suffix in (".part", ".work"))


def stopped(patch, *arguments, after=3):
    """A job that stops before so many batches and one are written."""
    with patch.context() as context:
        write, count = sink.TextSink.write, [0]

        def stop(self, batch, added):
            if count[0] == after:
                raise KeyboardInterrupt
            count[0] += 1
            write(self, batch, added)

        context.setattr(sink.TextSink, "write", stop)
        run(*arguments, code=130)


def stopped_at_the_end(patch, *arguments, replaced):
    """A job that stops just before or after the output takes its place."""
    with patch.context() as context:
        publish = work_folder.publish

        def stop(made, target):
            if target.name.endswith(".json"):
                return publish(made, target)
            if replaced:
                publish(made, target)
            raise KeyboardInterrupt

        context.setattr(work_folder, "publish", stop)
        run(*arguments, code=130)


# -- going on


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet"])
@pytest.mark.parametrize("force", [[], ["--force"]])
def test_a_finished_output_is_recognised(tmp_path, table, monkeypatch, capsys, kind, force):
    """Stopped between the replacement and the removal of the work folder: nothing is written
    again, and the summary is that of the whole."""
    given = JOB
    if kind == "parquet":
        import pyarrow.csv
        import pyarrow.parquet as pq

        pq.write_table(pyarrow.csv.read_csv("t.csv"), "t.parquet")
        given = [JOB[0], "t.parquet", *JOB[2:]]
    whole = answer(capsys, *given, "-o", f"whole.{kind}")
    out = tmp_path / f"o.{kind}"
    stopped_at_the_end(monkeypatch, *given, "-o", out.name, *force, replaced=True)
    assert out.read_bytes() == (tmp_path / f"whole.{kind}").read_bytes()
    assert left(tmp_path) == [f"o.{kind}.work"]
    before = out.stat()
    assert answer(capsys, *given, "-o", out.name, "--resume") == {**whole, "output": out.name}
    assert (out.stat().st_ino, out.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert left(tmp_path) == []


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_stopped_before_the_replacement_it_goes_on(tmp_path, table, monkeypatch, force):
    run(*JOB, "-o", "whole.csv")
    if force:
        (tmp_path / "o.csv").write_text("old")
    stopped_at_the_end(monkeypatch, *JOB, "-o", "o.csv", *force, replaced=False)
    run(*JOB, "-o", "o.csv", "--resume")
    assert (tmp_path / "o.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert left(tmp_path) == []


def test_a_finished_output_that_was_changed_is_not_overwritten(
    tmp_path, table, monkeypatch, capsys
):
    stopped_at_the_end(monkeypatch, *JOB, "-o", "o.csv", "--force", replaced=True)
    (tmp_path / "o.csv").write_text("edited by hand")
    run(*JOB, "-o", "o.csv", "--resume", code=2)
    assert "no longer what the job wrote: move it away" in capsys.readouterr().err
    assert (tmp_path / "o.csv").read_text() == "edited by hand"
    (tmp_path / "o.csv").unlink()
    run(*JOB, "-o", "o.csv", "--resume")
    assert len(read(tmp_path / "o.csv")) == 100


def test_an_output_that_appeared_is_not_overwritten(tmp_path, table, monkeypatch, capsys):
    stopped(monkeypatch, *JOB, "-o", "o.csv")
    (tmp_path / "o.csv").write_text("dear")
    run(*JOB, "-o", "o.csv", "--resume", code=2)
    assert "appeared since the job was interrupted" in capsys.readouterr().err
    assert (tmp_path / "o.csv").read_text() == "dear"


@pytest.mark.parametrize("damage", ["gone", "empty", "cut", "other", "shorter"])
def test_parts_that_are_gone_or_damaged_are_drawn_again(tmp_path, monkeypatch, damage):
    """By the same key: the output is that of a run without interruption.

    Would catch a traceback, or foreign bytes as cells.
    """
    trips(tmp_path / "history.csv", 300, users=5)
    trips(tmp_path / "t.csv", 200, users=30, seed=4)
    run("fit", "history.csv", "-o", "model.npz", *MAP, "--step", "5min")
    given = ["release", "t.csv", "--epsilon", "1", "--policy", "blocks:3"]
    given += ["--mobility", "model.npz", "--batch-rows", 20, "--seed", 3]
    run(*given, "-o", "whole.csv")
    original, runs = trace_releases.release_part, []

    def fourth(*arguments):
        runs.append(1)
        if len(runs) == 4:
            raise KeyboardInterrupt
        return original(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(trace_releases, "release_part", fourth)
        run(*given, "-o", "o.csv", code=130)
    parts = sorted(work_of(tmp_path / "o.csv").glob("part-*"))
    assert len(parts) >= 3  # those of nobody are there too
    rows = sorted(work_of(tmp_path / "o.csv").glob("rows-*"))
    for part in (*parts[1:], *rows):
        size = part.stat().st_size
        if damage == "gone":
            part.unlink()
        elif damage == "other":
            part.write_bytes(b"\x7f" * size)
        elif damage == "shorter":  # whole, and of another job
            shutil.copy(parts[0], part)
        else:
            os.truncate(part, 0 if damage == "empty" else size - 3)
    runs.clear()
    with monkeypatch.context() as patch:
        patch.setattr(trace_releases, "release_part", lambda *a: runs.append(1) or original(*a))
        run(*given, "-o", "o.csv", "--resume")
    total = int(parts[0].name.split("-")[3])
    assert len(runs) <= total - 1  # the first part was taken up
    assert (tmp_path / "o.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert left(tmp_path) == []


@pytest.mark.parametrize(
    "text",
    [b"", b"\0" * 400, b'{"kind": "pglp_fast rel', b"[1]\n", b"notes of mine\n", b'{"kind": 1}\n'],
)
def test_a_job_that_says_nothing_has_one_way_out(tmp_path, table, capsys, text):
    """Would catch a rerun that recommends --resume, which recommends something else."""
    (tmp_path / "o.csv.work").mkdir()
    (tmp_path / "o.csv.work" / "job.json").write_bytes(text)
    for more in ([], ["--resume"]):
        run(*JOB, "-o", "o.csv", *more, code=2)
        assert "--force, without --resume, removes it and starts anew" in capsys.readouterr().err
    assert (tmp_path / "o.csv.work" / "job.json").read_bytes() == text
    run(*JOB, "-o", "o.csv", "--force")
    assert len(read(tmp_path / "o.csv")) == 100 and left(tmp_path) == []


def test_a_disk_that_is_full_at_the_start_leaves_nothing(tmp_path, table, monkeypatch):
    def full(self):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Job, "_write", full)
        run(*JOB, "-o", "o.csv", code=2)
    assert left(tmp_path) == []


def test_what_is_no_work_folder_is_told(tmp_path, table, capsys):
    (tmp_path / "o.csv.work").write_text("dear")
    for more in ([], ["--force"]):
        run(*JOB, "-o", "o.csv", *more, code=2)
        assert "is not a folder: move it away" in capsys.readouterr().err
    (tmp_path / "p.csv.work").symlink_to(tmp_path)
    run(*JOB, "-o", "p.csv", "--force", code=2)
    assert "is not a folder: move it away" in capsys.readouterr().err
    run(*JOB, "-o", "t.csv/o.csv", code=2)
    assert "t.csv is not a folder" in capsys.readouterr().err


# -- files of others


def test_folders_of_others_are_left_alone(tmp_path, table, capsys):
    stranger = tmp_path / "o.csv.work" / "thesis.txt"
    stranger.parent.mkdir()
    stranger.write_text("dear")
    for more in ([], ["--resume"], ["--force"]):
        run(*JOB, "-o", "o.csv", *more, code=2)
        assert "is in the way, and nothing in it says" in capsys.readouterr().err
        assert stranger.read_text() == "dear" and not (tmp_path / "o.csv").exists()


def test_a_sidecar_of_others_is_left_alone(tmp_path, table, capsys):
    (tmp_path / "o.csv.json").write_text("dear")
    run(*JOB, "-o", "o.csv", code=2)
    assert "o.csv.json is there: --force overwrites it" in capsys.readouterr().err
    assert (tmp_path / "o.csv.json").read_text() == "dear" and left(tmp_path) == []
    run(*JOB, "-o", "o.csv", "--force")


@posix
@pytest.mark.parametrize("end", ["", ".json"])
@pytest.mark.parametrize("which", ["table", "labels", "edges", "config", "model", "linked"])
def test_nothing_that_is_read_is_written(tmp_path, table, capsys, end, which):
    """Whatever name it has, also by a link; with --force, too.

    Would catch an input that is deleted as the output's part.
    """
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
    """The output, no wider than the input, and what is written while the job runs."""
    table.chmod(given)
    job_ = [*JOB, "--keep", "all", "-o", "o.csv"]
    stopped(monkeypatch, *job_)
    assert mode(tmp_path / "o.csv.work") == 0o700
    assert {mode(p) for p in (tmp_path / "o.csv.work").iterdir()} == {0o600}
    run(*job_, "--resume")
    assert mode(tmp_path / "o.csv") == mode(tmp_path / "o.csv.json") == 0o600 & given


@posix
@pytest.mark.parametrize(
    ("old", "safe", "new"),
    [(None, True, 0o644), (0o600, True, 0o600), (0o644, False, 0o600), (0o440, True, 0o440)],
)
def test_what_is_replaced_never_becomes_more_open(tmp_path, table, old, safe, new):
    out = tmp_path / "o.csv"
    if old is not None:
        out.write_text("old")
        out.chmod(old)
    mask = os.umask(0o022)
    try:
        run(*JOB, "-o", "o.csv", "--force", *([] if safe else ["--keep", "all"]))
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
    assert (
        sorted(p.name for p in (tmp_path / "far").iterdir()) == ["real.csv", "real.csv.json"]
        and left(tmp_path) == []
    )
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
    """Would catch a job that waits for ever, or reads a pipe once and finds nothing the second
    time."""
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

    pq.write_table(
        pyarrow.csv.read_csv("t.csv"), "t.parquet", compression="snappy", use_dictionary=False
    )
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

"""Cases: what the command line says and writes, each in a folder of its own, by relative paths."""

import contextlib
import gzip
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from golden_store import digest, figures
from golden_traces import moves

import pglp_fast as pf
from pglp_fast import cli

try:
    import pyarrow
except ImportError:
    pyarrow = None

BOX = ["--bounds", "35.68,35.72,139.60,139.65", "--cell-km", "0.4"]
PROMISE = ["--epsilon", "1", "--policy", "blocks:3"]
MODEL = ["--mobility", "model.npz"]
KEEP = ["--keep", "all"]
MEASURED = {
    "bytes",
    "seconds",
    "time",
    "times",
    "took",
    "rate",
    "elapsed",
}  # keys of JSON that are measured, or hang on the style


@contextlib.contextmanager
def folder():
    """A new folder to work in, without real data in reach."""
    with (
        tempfile.TemporaryDirectory() as name,
        contextlib.chdir(name),
        environment(PGLP_FAST_DATA=""),
    ):
        yield Path(name)


@contextlib.contextmanager
def environment(**variables):
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def masked(text):
    text = text.replace(os.getcwd(), "HERE").replace(os.path.realpath(os.getcwd()), "HERE")
    text = text.replace(pf.__version__, "VERSION")
    text = re.sub(r"\b\d+(\.\d+)? ([kM])B\b", r"N \2B", text)
    return re.sub(r"\b\d+(\.\d+)? (s|ms|us|seconds)\b", "N s", text)


def without_times(value):
    if isinstance(value, dict):
        return {k: "measured" if k in MEASURED else without_times(v) for k, v in value.items()}
    if isinstance(value, list):
        return [without_times(v) for v in value]
    return masked(value) if isinstance(value, str) else value


def said(*arguments):
    """Exit code, standard output (read as JSON where that is asked for) and standard error."""
    out, err = io.StringIO(), io.StringIO()
    wide = environment(COLUMNS="100")  # for the help, which is broken to the terminal's width
    with wide, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = cli.main([str(a) for a in arguments])
    text = out.getvalue()
    as_json = "--json" in arguments and code in (0, 1)
    answer = without_times(json.loads(text)) if as_json else timeless(masked(text))
    return {"code": code, "out": answer, "err": masked(err.getvalue())}


def table(name):
    if not Path(name).exists():
        return "not written"
    data = Path(name).read_bytes()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    lines = data.decode().split("\n")
    return {"lines": len(lines), "first": lines[:6], "last": lines[-3:], "sha256": digest(data)}


def page(name):
    """A report: its text without style, scripts and pictures, and the figures that it embeds."""
    text = masked(Path(name).read_text(encoding="utf-8"))
    body = re.sub(r"<(style|script|svg)\b.*?</\1>", r"[\1]", text, flags=re.S)
    lines = [" ".join(line.split()) for line in re.sub(r"<[^>]*>", "\n", body).split("\n")]
    found = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', text, re.S)
    return {"words": "\n".join(filter(None, lines)), "data": [figures(d) for d in found]}


def timeless(text):
    """Findings without what was measured: claims that something takes longer."""
    lines, measured = [], False
    for line in text.split("\n"):
        if "longer" in line:
            line = re.sub(r"\b(not supported|supported|undecided)\b *", "VERDICT ", line)
            line = re.sub(r" ?\([^()]* at worst[^()]*\)", "", line)  # by how much
            measured = True
        elif line.startswith(("- ", "| ", "#")):
            measured = False
        if measured and line.startswith("  Numbers:"):
            line = "  Numbers: measured"
        lines.append(line)
    return "\n".join(lines)


def made():
    """Tables and a model that the cases work on."""
    how = [*BOX, "--steps", "30"]
    out = {
        "history": said("simulate", "-o", "history.csv", "--users", "40", "--seed", "1", *how),
        "trips": said(
            "simulate",
            "-o",
            "trips.csv",
            "--users",
            "6",
            "--missing",
            "0.2",
            "--seed",
            "2",
            "--places",
            "places.csv",
            *how,
        ),
        "fit": said("fit", "history.csv", "-o", "model.npz", *BOX),
    }
    return out


def commands():
    out = {}
    with folder():
        out["made"] = made()
        out["simulated"] = {n: table(n) for n in ("history.csv", "trips.csv", "places.csv")}
        zipped = [
            "--users",
            "3",
            "--steps",
            "10",
            "--step",
            "10min",
            "--start",
            "2026-03-02",
            "--seed",
            "4",
        ]
        out["simulate, json"] = said("simulate", "-o", "z.csv.gz", *zipped, "--json")
        out["simulated, zipped"] = table("z.csv.gz")
        out["model"] = moves(pf.MobilityModel.open("model.npz"))
        fits = {
            "json": ["--json"],
            "periods": ["--periods", "4", "--utc-offset", "9h", "--json"],
            "smooth": [
                "--smoothing",
                "neighbours8",
                "--step",
                "10min",
                "--max-speed",
                "150",
                "--json",
            ],
            "no bounds": ["--json"],
        }
        for name, more in fits.items():
            box = ["--cell-km", "0.5"] if name == "no bounds" else BOX
            out[f"fit, {name}"] = said("fit", "history.csv", "-o", "m.npz", "--force", *box, *more)
            out[f"fit, {name}, model"] = moves(pf.MobilityModel.open("m.npz"))
        out |= _released()
        out |= _looked()
        out |= _refused()
    return out


def _released():
    out = {}
    edges = "".join(f"{k},{k + 5}\n" for k in range(0, 60, 3))
    Path("pairs.csv").write_text("a,b\n" + edges)
    Path("job.toml").write_text(
        'table = "trips.csv"\noutput = "toml.csv"\nepsilon = 1.0\npolicy = "blocks:3"\n'
        'mobility = "model.npz"\nseed = 3\n'
    )
    lines = Path("trips.csv").read_text().split("\n")
    lines[4], lines[9] = "u0,broken", lines[8]
    Path("broken.csv").write_text("\n".join(lines))
    ways = {
        "alone": [*PROMISE, *BOX],
        "kept": [*PROMISE, *BOX, *KEEP],
        "named": [*PROMISE, *BOX, "--keep", "time,place", "--prefix", "x_"],
        "no bounds": [*PROMISE, "--cell-km", "0.4"],
        "plm": ["--epsilon", "0.5", "--policy", "neighbours8", "--mechanism", "plm", *BOX],
        "graph": [*PROMISE, "--calibration", "graph", *BOX],
        "remap": [*PROMISE, "--remap", "euclidean", *BOX],
        "optimal": [*PROMISE, "--mechanism", "optimal", *BOX],
        "categories": [
            "--epsilon",
            "2",
            "--policy",
            "categories:6",
            "--labels",
            "places.csv",
            *BOX,
        ],
        "edges": ["--epsilon", "2", "--policy", "edges:pairs.csv", *BOX],
        "budget": [*PROMISE, *BOX, "--budget", "5", "--on-error", "skip"],
        "steps": [*PROMISE, *MODEL],
        "steps, kept": [*PROMISE, *MODEL, *KEEP],
        "steps, density": [*PROMISE, *MODEL, "--likelihood", "density", "--delta", "0.05"],
        "steps, repair": [*PROMISE, *MODEL, "--repair", "nearest", "--calibration", "graph"],
        "steps, krr": [*PROMISE, *MODEL, "--mechanism", "krr"],
        "steps, remap": [*PROMISE, *MODEL, "--remap", "squared"],
        "steps, other step": [*PROMISE, *MODEL, "--step", "10min"],
        "steps, budget": [*PROMISE, *MODEL, "--budget", "4", "--on-error", "skip"],
        "steps, resume": [*PROMISE, *MODEL, "--resume"],
    }
    for name, how in ways.items():
        file = f"{name.replace(', ', '-').replace(' ', '-')}.csv"
        given = ["release", "trips.csv", "-o", file, *how, "--seed", "5"]
        out[f"release, {name}"] = {"said": said(*given), "table": table(file)}
        out[f"release, {name}, json"] = said(*given, "--force", "--json")
    broken = ["release", "broken.csv", "-o", "b.csv", *PROMISE, *BOX, "--seed", "5"]
    out["release, broken"] = said(*broken)
    out["release, skip"] = {"said": said(*broken, "--on-error", "skip"), "table": table("b.csv")}
    out["release, toml"] = {
        "said": said("release", "--config", "job.toml"),
        "table": table("toml.csv"),
    }
    if pyarrow is not None:
        out |= _parquet()
    out["release, own"] = said(
        "release", "history.csv", "-o", "own.csv", *PROMISE, *MODEL, "--seed", "5"
    )
    out["released, own"] = table("own.csv")
    return out


def _parquet():
    from pyarrow import parquet

    out = {}
    parquet.write_table(pf.read_table("trips.csv").to_arrow(), "trips.parquet")
    for name, how in (("alone", BOX), ("steps", MODEL)):
        file = f"{name}.parquet"
        given = ["release", "trips.parquet", "-o", file, *PROMISE, *how, "--seed", "5"]
        answer = said(*given)
        made = parquet.read_table(file)
        facts = json.loads(made.schema.metadata[b"pglp_fast"])
        columns = {n: made[n].to_pylist() for n in made.column_names if n.startswith("released")}
        columns = {k: np.array(v) for k, v in columns.items()}
        types = [f"{f.name}: {f.type}" for f in made.schema]
        tree = {"said": answer, "columns": columns, "types": types, "facts": without_times(facts)}
        out[f"release, parquet, {name}"] = tree
    return out


def _looked():
    """Certificates, attacks, reports and pictures."""
    out = {}
    mechanisms = ("ppim", "plm", "planar-laplace", "krr", "graph-exponential", "optimal")
    for name in mechanisms:
        for more in ([], ["--json"]):
            how = [*PROMISE, "--mechanism", name, *BOX, *more]
            out[" ".join(["certify", name, *more])] = said("certify", *how)
    graph = ["certify", *PROMISE, "--calibration", "graph", "--remap", "euclidean", *MODEL]
    out["certify, graph"] = said(*graph)
    out["certify, complete"] = said(
        "certify", "--epsilon", "1", "--policy", "complete", *BOX, "--mechanism", "pim"
    )
    for more in ([], ["--json"]):
        name = " ".join(["attack", *more])
        out[name] = said("attack", "steps.csv", *PROMISE, *MODEL, *more)
        density = ["--likelihood", "density", "--delta", "0.05"]
        out[f"{name}, density"] = said(
            "attack", "steps-density.csv", *PROMISE, *MODEL, *density, *more
        )
        out[f"{name}, kept"] = said("attack", "steps-kept.csv", *PROMISE, *MODEL, *more)
        report = ["report", "steps.csv", "-o", "steps.html", *PROMISE, *MODEL, "--force", *more]
        out[" ".join(["report", *more])] = said(*report)
        alone = ["report", "alone.csv", "-o", "alone.html", *PROMISE, *BOX, "--force", *more]
        out[" ".join(["report, alone", *more])] = said(*alone)
        kinds = {
            "map": ["trips.csv", *BOX],
            "policy": ["--policy", "blocks:3", *BOX],
            "noise": [*PROMISE, *BOX, "--at", "35.70,139.62"],
            "trace": ["kept.csv", *BOX, "--steps", "10"],
        }
        for kind, how in kinds.items():
            given = ["plot", kind, *how, "-o", f"{kind}.png", "--dpi", "40", "--force", *more]
            out[" ".join(["plot", kind, *more])] = said(*given)
            assert Path(f"{kind}.png").read_bytes()[:4] == b"\x89PNG"
        demo = ["demo", "--people", "2000", "--seed", "1", "--out", "pictures", "--force", *more]
        out[" ".join(["demo", *more])] = said(*demo)
    out["report, page"] = page("steps.html")
    out["report, alone, page"] = page("alone.html")
    given = ["--with-truth", "--title", "A <b>day</b>", "--users", "2", "--force"]
    out["report, truth"] = said(
        "report", "steps-kept.csv", "-o", "truth.html", *PROMISE, *MODEL, *given
    )
    out["report, truth, page"] = page("truth.html")
    return out


def _refused():
    Path("few.csv").write_text("who,when\na,b\n")
    release = ["release", "trips.csv", "-o", "new.csv"]
    calls = {
        "nothing": [],
        "unknown": ["nothing"],
        "no table": ["release", "none.csv", "-o", "new.csv", *PROMISE, *BOX],
        "no columns": ["release", "few.csv", "-o", "new.csv", *PROMISE, *BOX],
        "epsilon": [*release, "--epsilon", "0", "--policy", "blocks:3", *BOX],
        "policy": [*release, "--epsilon", "1", "--policy", "squares", *BOX],
        "no labels": [*release, "--epsilon", "1", "--policy", "categories:6", *BOX],
        "no cell": [*release, *PROMISE],
        "bounds": [*release, *PROMISE, "--bounds", "1,2", "--cell-km", "1"],
        "there": ["release", "trips.csv", "-o", "alone.csv", *PROMISE, *BOX],
        "itself": ["release", "trips.csv", "-o", "trips.csv", *PROMISE, *BOX, "--force"],
        "budget": [*release, *PROMISE, *BOX, "--budget", "2"],
        "delta alone": [*release, *PROMISE, *BOX, "--delta", "0.1"],
        "no model": [*release, *PROMISE, "--mobility", "none.npz"],
        "foreign model": [*release, *PROMISE, "--mobility", "few.csv"],
        "attack": ["attack", "trips.csv", *PROMISE, *MODEL],
        "simulate": ["simulate", "-o", "new.csv", "--users", "-1"],
        "plot": ["plot", "tree", "-o", "x.png"],
        "experiment": ["experiment", "none"],
    }
    out = {f"refused, {name}": said(*given) for name, given in calls.items()}
    for case in out.values():  # the usage above it is argparse's, and so are quotes around choices
        case["err"] = case["err"].strip().split("\n")[-1].replace("'", "")
    return out


def helps():
    names = [
        "demo",
        "simulate",
        "city",
        "fit",
        "release",
        "certify",
        "attack",
        "report",
        "plot",
        "experiment",
        "warmup",
    ]
    return {name: said(name, "--help") for name in names} | {"all": said("--help")}


def resumed():
    """A release that is interrupted at some moment and resumed: as if it never had been."""
    out = {}
    tree = str(Path(pf.__file__).resolve().parent.parent)
    paths = os.pathsep.join(p for p in (tree, os.environ.get("PYTHONPATH")) if p)
    command = [sys.executable, "-m", "pglp_fast.cli"]
    with folder():
        made()
        said("simulate", "-o", "long.csv", "--users", "300", "--steps", "60", "--seed", "7", *BOX)
        for name, how in (("alone", BOX), ("steps", MODEL)):
            job = ["release", "long.csv", "-o", f"{name}.csv", *PROMISE, *how, "--seed", "5"]
            running = subprocess.Popen(
                [*command, *job],
                env={**os.environ, "PYTHONPATH": paths},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            head, file = Path(f"{name}.csv.work/job.json"), Path(f"{name}.csv")
            while running.poll() is None and not head.exists():
                time.sleep(0.002)
            if running.poll() is None:
                running.send_signal(signal.SIGINT)
            running.wait()
            # whether the signal came in time or not, the table is the same
            if file.exists() and not head.exists():
                file.unlink()
                Path(f"{name}.csv.json").unlink()
            out[name] = {"said": said(*job, "--resume"), "table": table(file)}
    return out


def experiments():
    """``experiment all --quick``: numbers and findings. Times are measured, and left out."""
    out = {}
    with folder() as here:
        out["said"] = said(
            "experiment", "all", "--quick", "--seed", "3", "--out", "e", "--no-progress"
        )
        names = sorted(
            str(p.relative_to(here / "e")) for p in (here / "e").rglob("*") if p.is_file()
        )
        out["files"] = names
        for name in names:
            path = here / "e" / name
            if path.name == "results.csv":
                out[name] = rows(path)
            elif path.suffix == ".md":
                out[name] = timeless(masked(path.read_text(encoding="utf-8")))
        json_of = [
            "experiment",
            "policies",
            "--quick",
            "--seed",
            "3",
            "--out",
            "j",
            "--no-progress",
            "--json",
        ]
        out["json"] = said(*json_of)
    return out


def rows(path):
    """A table of results by column: numbers as floats, the rest as text."""
    import csv

    with open(path, newline="", encoding="utf-8") as file:
        header, *lines = list(csv.reader(file))
    columns = {}
    for name, values in zip(header, zip(*lines, strict=True), strict=True):
        try:
            columns[name] = np.array([float(v) if v else np.nan for v in values])
        except ValueError:
            columns[name] = list(values)
    for name, values in columns.items():
        if isinstance(values, np.ndarray):  # kept as they are, however many
            columns[name] = {str(k): values[k : k + 400] for k in range(0, len(values), 400)}
        else:
            columns[name] = {"sha256": digest("\n".join(values)), "first": values[:3]}
    return columns


GROUPS = {"cli": commands, "cli_help": helps, "cli_resume": resumed, "experiments": experiments}

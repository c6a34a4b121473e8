"""What ``pglp-fast simulate`` writes: a table, places and a model of a made-up city."""

import argparse
import gzip
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from pglp_fast._util.packages import need
from pglp_fast._util.times import moment
from pglp_fast.adversary.mobility import MobilityModel
from pglp_fast.errors import InvalidParameter
from pglp_fast.pipeline import paths
from pglp_fast.pipeline.maps import describe
from pglp_fast.pipeline.simulation import Simulation, arrow_table, degrees, write_parts
from pglp_fast.space.synthetic import CATEGORIES, City, synthetic_city

from . import maps, terminal

Blocks = Iterable[dict[str, Any]]


def simulate(options: argparse.Namespace) -> None:
    """All that the options ask for."""
    out = Path(options.output)
    places, model = (None if p is None else Path(p) for p in (options.places, options.model))
    kind = next((e for e in (".parquet", ".csv.gz", ".csv") if out.name.lower().endswith(e)), None)
    if kind is None and (out.suffix or not options.days):
        raise InvalidParameter(f"{out}: name the table .csv, .csv.gz or .parquet")
    if not options.days and (options.model or options.periods):
        raise InvalidParameter("--model and --periods are for --days: give it, or leave them out")
    if options.periods and not options.model:
        raise InvalidParameter("--periods is for --model: give both, or leave it out")
    if kind is None:
        paths.refuse_full_folder(
            out, options.force, "name a folder, or a table .csv or .parquet", "replaces its parts"
        )
    for path in (out if kind else None, places, model):
        if path is not None:
            paths.refuse_existing(path, options.force)
    city = _city(options)
    rows = _write_people(options, city, out, kind)
    if places is not None:
        _write_places(city, places, options.force)
    if model is not None:
        save_model(city, model, options.periods or 6, options.step)
    document = {
        "table": str(out),
        "rows": rows,
        "users": options.users,
        "places": options.places,
        "seed": options.seed,
        "bounds": list(options.bounds),
        **({"model": str(model)} if model else {}),
    }
    text = f"{out}: {rows:,} rows of {options.users:,} users on {describe(city.grid)}"
    text += f"\n{places}: places with their category" if places else ""
    text += (
        f"\n{model}: how people move, in {options.periods or 6} periods of a day" if model else ""
    )
    terminal.result(options.json, document, text)


def _city(options: argparse.Namespace) -> City:
    grid = maps.grid_of(options.bounds, options.cell_km)
    if options.days:
        return City.on(grid)
    made = synthetic_city(grid.rows, grid.cols, cell_km=options.cell_km[0])
    return City(grid, made.density, made.categories, made.districts)  # with another origin


def _write_people(options: argparse.Namespace, city: City, out: Path, kind: str | None) -> int:
    """The table, or a folder of parts; how many rows it has."""
    made = Simulation(
        city, options.users, options.steps, options.step, moment(options.start, "--start"),
        options.missing, options.seed,
    )  # fmt: skip
    if kind is None:
        return sum(write_parts(out, made))
    blocks = made.blocks() if options.days else made.walks()
    with paths.atomic(out, options.force) as path:
        return (_write_parquet if kind == ".parquet" else _write_text)(path, blocks)


def save_model(city: City, path: Path, periods: int, step_ms: int) -> None:
    """Write what the public knows of how people of a city move."""
    model = MobilityModel(city.grid, city.transitions(periods=periods))
    model.save(path, notes={"step_ms": step_ms, "ahead_ms": 0})


def _write_places(city: City, places: Path, force: bool) -> None:
    known = np.flatnonzero(city.categories >= 0)
    lat, lon = degrees(city.grid, known, np.zeros((len(known), 2))).T
    kinds = np.array(CATEGORIES)[city.categories[known]]
    with paths.atomic(places, force) as path:
        _write_text(path, [{"lat": lat, "lon": lon, "category": kinds}])


def _write_text(path: Path, blocks: Blocks) -> int:
    """Blocks of columns of arrays as a text table, some rows at a time."""
    rows = 0
    with (
        gzip.open(path, "wb", compresslevel=6) if path.suffix == ".gz" else path.open("wb") as file
    ):
        for number, columns in enumerate(blocks):
            if not number:
                file.write((",".join(columns) + "\n").encode())
                unit = _unit(columns.get("time"))
            rows += len(columns["lat"])
            for a in range(0, len(columns["lat"]), 1 << 16):
                parts = (_text(column[a : a + (1 << 16)], unit) for column in columns.values())
                file.write(("\n".join(map(",".join, zip(*parts, strict=True))) + "\n").encode())
    return rows


def _unit(moments: Any) -> Any:
    """To which moments are written: seconds, unless they need more. All people share a clock."""
    return "ms" if moments is not None and (moments.astype("int64") % 1000).any() else "s"


def _text(part: Any, unit: Any) -> Any:
    """Values as they are written."""
    if part.dtype.kind == "f":
        return [f"{v:.6f}" for v in part.tolist()]
    if part.dtype.kind == "M":
        return np.char.add(np.datetime_as_string(part, unit), "Z").tolist()
    return part.astype(str).tolist()


def _write_parquet(path: Path, blocks: Blocks) -> int:
    tables, rows = map(arrow_table, blocks), 0
    first = next(tables)
    with need("pyarrow.parquet").ParquetWriter(path, first.schema) as writer:
        for table in chain([first], tables):
            writer.write_table(table)
            rows += len(table)
    return rows

"""``pglp-fast simulate``: people who move about a made-up city, as a table."""

import argparse
from itertools import chain
from pathlib import Path
from typing import Any

from .options import (
    Commands,
    add_json,
    add_output,
    bounds,
    cell_km,
    command,
    count_from,
    duration,
    share,
)

_TEXT = """
Write a table (user, time, lat, lon, place) of people who move about a made-up city with a centre,
four suburbs and a river. People stay or step to a cell beside theirs, more readily towards where
many people are. The same seed gives the same table; another seed gives other people in the same
city.

With --days the city has a district for every so many cells, and people have homes, go to work in
the morning, go out and come home. They are made and written some at a time: a city of millions
takes no more memory than a town. -o FOLDER (a name without an ending) then has Parquet parts. With
--model, what is publicly known of how they move goes with it, for each period of the day.
"""
_EXAMPLES = """
pglp-fast simulate -o trips.csv --users 50
pglp-fast simulate -o week.csv.gz --users 20 --steps 2016 --step 5min --start 2026-03-02 \\
    --missing 0.3 --seed 3
pglp-fast simulate -o small.csv --users 10 --bounds 52.48,52.55,13.35,13.45 --cell-km 0.5 \\
    --places places.csv
pglp-fast simulate -o city --users 2000 --steps 288 --days --model city.npz --periods 6
"""


def add(commands: Commands) -> None:
    parser = command(commands, "simulate", "write a table of made-up people", _TEXT, _EXAMPLES)
    add_output(parser, "the table: .csv, .csv.gz or .parquet; with --days also a folder")
    parser.add_argument(
        "--users", type=count_from(1), default=100, metavar="N", help="people (default: 100)"
    )
    parser.add_argument(
        "--steps", type=count_from(1), default=100, metavar="N", help="steps of each (default: 100)"
    )
    parser.add_argument(
        "--step",
        type=duration,
        default=300_000,
        metavar="TIME",
        help="duration of a step (default: 5min)",
    )
    parser.add_argument(
        "--start",
        default="2026-01-05",
        metavar="TIME",
        help="of the first step, UTC (default: 2026-01-05)",
    )
    parser.add_argument(
        "--missing",
        type=share,
        default=0.0,
        metavar="SHARE",
        help="rows to leave out at random (default: 0)",
    )
    parser.add_argument(
        "--bounds",
        type=bounds,
        default=(35.68, 35.82, 139.60, 139.77),
        metavar="LAT0,LAT1,LON0,LON1",
        help="where the city lies (default: 35.68,35.82,139.60,139.77)",
    )
    parser.add_argument(
        "--cell-km",
        type=cell_km,
        default=(0.34, 0.34),
        metavar="KM",
        help="size of a step on the ground (default: 0.34)",
    )
    parser.add_argument(
        "--places",
        metavar="FILE",
        help="also write the city's places: a table of lat,lon,category for --labels",
    )
    parser.add_argument(
        "--seed",
        type=count_from(0),
        default=0,
        metavar="N",
        help="other numbers give other people (default: 0)",
    )
    _add_days(parser)
    add_json(parser)
    parser.set_defaults(run=_run)


def _add_days(parser: Any) -> None:
    days = parser.add_argument_group("days with homes, work and leisure")
    days.add_argument(
        "--days", action="store_true", help="people follow the time of day, in a city of districts"
    )
    days.add_argument(
        "--model",
        metavar="FILE",
        help="with --days: also write a mobility model, of how people of this city move in general",
    )
    days.add_argument(
        "--periods",
        type=count_from(1),
        metavar="N",
        help="with --model: matrices, one for each Nth of the day, at most 24 (default: 6)",
    )


def _walk(density: Any, rows: int, cols: int, users: int, steps: int, rng: Any) -> Any:
    """(users, steps) cells: Metropolis' walk over the eight around, which visits cells as often
    as the density says."""
    import numpy as np

    out = np.empty((users, steps), np.int32)
    cell = rng.choice(rows * cols, users, p=density)
    for t in range(steps):
        out[:, t] = cell
        row, col = (
            cell // cols + rng.integers(-1, 2, users),
            cell % cols + rng.integers(-1, 2, users),
        )
        on = (row >= 0) & (row < rows) & (col >= 0) & (col < cols)
        there = np.where(on, row * cols + col, cell)
        go = on & (rng.random(users) * density[cell] < density[there])
        cell = np.where(go, there, cell)
    return out


def _write(path: Path, blocks: Any) -> None:
    """Blocks of columns of arrays as a text table, some rows at a time."""
    import gzip

    with (
        gzip.open(path, "wb", compresslevel=6) if path.suffix == ".gz" else path.open("wb") as file
    ):
        for number, columns in enumerate(blocks):
            if not number:
                file.write((",".join(columns) + "\n").encode())
                unit = _unit(columns.get("time"))
            for a in range(0, len(columns["lat"]), 1 << 16):
                parts = (_text(column[a : a + (1 << 16)], unit) for column in columns.values())
                file.write(("\n".join(map(",".join, zip(*parts, strict=True))) + "\n").encode())


def _unit(moments: Any) -> str:
    """To which moments are written: seconds, unless they need more. All people share a clock."""
    return "ms" if moments is not None and (moments.astype("int64") % 1000).any() else "s"


def _text(part: Any, unit: Any) -> Any:
    """Values as they are written."""
    import numpy as np

    if part.dtype.kind == "f":
        return [f"{v:.6f}" for v in part.tolist()]
    if part.dtype.kind == "M":
        return np.char.add(np.datetime_as_string(part, unit), "Z").tolist()
    return part.astype(str).tolist()


def _run(options: argparse.Namespace) -> None:
    from pglp_fast.errors import InvalidParameter
    from pglp_fast.pipeline import paths
    from pglp_fast.pipeline.maps import describe

    from . import maps, terminal

    out, places = Path(options.output), None if options.places is None else Path(options.places)
    kind = next((e for e in (".parquet", ".csv.gz", ".csv") if out.name.lower().endswith(e)), None)
    if kind is None and (out.suffix or not options.days):
        raise InvalidParameter(f"{out}: name the table .csv, .csv.gz or .parquet")
    if not options.days and (options.model or options.periods):
        raise InvalidParameter("--model and --periods are for --days: give it, or leave them out")
    if options.periods and not options.model:
        raise InvalidParameter("--periods is for --model: give both, or leave it out")
    model = None if options.model is None else Path(options.model)
    if kind is None:
        _refuse_folder(out, options.force)
    for path in (out if kind else None, places, model):
        if path is not None:
            paths.refuse_existing(path, options.force)
    grid = maps.grid_of(options.bounds, options.cell_km)
    city, rows = (_write_days if options.days else _write_walks)(options, grid, out, kind)
    _write_places(options, city, places)
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
    text = f"{out}: {rows:,} rows of {options.users:,} users on {describe(grid)}"
    text += f"\n{places}: places with their category" if places else ""
    text += (
        f"\n{model}: how people move, in {options.periods or 6} periods of a day" if model else ""
    )
    terminal.result(options.json, document, text)


def _refuse_folder(out: Path, force: bool) -> None:
    """Parts go into a new or empty folder, or replace those of an earlier city."""
    from pglp_fast.errors import InvalidParameter

    if out.exists() and not out.is_dir():
        raise InvalidParameter(f"{out} is a file: name a folder, or a table .csv or .parquet")
    if not out.parent.is_dir():
        raise InvalidParameter(f"{out.parent} is not a folder: make it first")
    if out.is_dir() and any(out.iterdir()) and not force:
        raise InvalidParameter(f"{out} is there and is not empty: --force replaces its parts")


def _write_walks(options: Any, grid: Any, out: Path, kind: str | None) -> tuple[Any, int]:
    """All people at once; (city, rows)."""
    import numpy as np

    from pglp_fast._util.times import moment
    from pglp_fast.pipeline import paths
    from pglp_fast.space.synthetic import CATEGORIES, City, synthetic_city

    start = moment(options.start, "--start")
    made = synthetic_city(grid.rows, grid.cols, cell_km=options.cell_km[0])
    city = City(grid, made.density, made.categories, made.districts)  # with another origin
    columns = _people(options, city, grid, start)
    columns["place"] = np.array([*CATEGORIES, ""])[city.categories[columns.pop("cell")]]
    with paths.atomic(out, options.force) as path:
        (_write_parquet if kind == ".parquet" else _write)(path, [columns])
    return city, len(columns["time"])


def _write_days(options: Any, grid: Any, out: Path, kind: str | None) -> tuple[Any, int]:
    """People block by block; (city, rows)."""
    from pglp_fast._util.times import moment
    from pglp_fast.pipeline import paths
    from pglp_fast.pipeline.simulation import Simulation, write_parts
    from pglp_fast.space.synthetic import City

    start, city = moment(options.start, "--start"), City.on(grid)
    made = Simulation(
        city, options.users, options.steps, options.step, start, options.missing, options.seed
    )
    if kind is None:
        return city, sum(write_parts(out, made))
    rows = 0

    def counted() -> Any:
        nonlocal rows
        for columns in made.blocks():
            rows += len(columns["lat"])
            yield columns

    with paths.atomic(out, options.force) as path:
        (_write_parquet if kind == ".parquet" else _write)(path, counted())
    return city, rows


def save_model(city: Any, path: Path, periods: int, step_ms: int) -> None:
    """Write what the public knows of how people of a city move."""
    from pglp_fast.adversary.mobility import MobilityModel

    model = MobilityModel(city.grid, city.transitions(periods=periods))
    model.save(path, notes={"step_ms": step_ms, "ahead_ms": 0})


def _write_places(options: Any, city: Any, places: Path | None) -> None:
    import numpy as np

    from pglp_fast.pipeline import paths
    from pglp_fast.pipeline.simulation import degrees
    from pglp_fast.space.synthetic import CATEGORIES

    if places is None:
        return
    known = np.flatnonzero(city.categories >= 0)
    at = degrees(city.grid, known, np.zeros((len(known), 2)))
    kinds = np.array(CATEGORIES)[city.categories[known]]
    with paths.atomic(places, options.force) as path:
        _write(path, [{"lat": at[:, 0], "lon": at[:, 1], "category": kinds}])


def _people(options: argparse.Namespace, city: Any, grid: Any, start: int) -> dict[str, Any]:
    """Columns user, time, lat, lon and cell of the rows that are not left out."""
    import numpy as np

    from pglp_fast.pipeline.simulation import degrees

    rng = np.random.default_rng([options.seed, 1])
    cells = _walk(city.density, grid.rows, grid.cols, options.users, options.steps, rng)
    user = np.repeat(np.arange(options.users), options.steps)
    when = np.tile(start + np.arange(options.steps) * options.step, options.users)
    keep = rng.random(user.size) >= options.missing
    jitter = (rng.random((user.size, 2)) - 0.5) * 0.999  # anywhere in the cell
    chosen = cells.reshape(-1)[keep]
    place = degrees(grid, chosen, jitter[keep])
    width = len(str(options.users - 1))
    names = np.array([f"u{number:0{width}d}" for number in range(options.users)])
    return {
        "user": names[user[keep]],
        "time": when[keep].astype("datetime64[ms]"),
        "lat": place[:, 0],
        "lon": place[:, 1],
        "cell": chosen,
    }


def _write_parquet(path: Path, blocks: Any) -> None:
    from pglp_fast._util.packages import need
    from pglp_fast.pipeline.simulation import arrow_table

    parquet = need("pyarrow.parquet")
    tables = map(arrow_table, blocks)
    first = next(tables)
    with parquet.ParquetWriter(path, first.schema) as writer:
        for table in chain([first], tables):
            writer.write_table(table)

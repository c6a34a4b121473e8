"""``pglp-fast simulate``: people who move about a made-up city, as a table."""

import argparse
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
"""
_EXAMPLES = """
pglp-fast simulate -o trips.csv --users 50
pglp-fast simulate -o week.csv.gz --users 20 --steps 2016 --step 5min --start 2026-03-02 \\
    --missing 0.3 --seed 3
pglp-fast simulate -o small.csv --users 10 --bounds 52.48,52.55,13.35,13.45 --cell-km 0.5 \\
    --places places.csv
"""


def add(commands: Commands) -> None:
    parser = command(commands, "simulate", "write a table of made-up people", _TEXT, _EXAMPLES)
    add_output(parser, "the table: .csv, .csv.gz or .parquet")
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
    add_json(parser)
    parser.set_defaults(run=_run)


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


def _write(path: Path, columns: dict[str, Any]) -> None:
    """Columns of arrays as a text table, some rows at a time."""
    import gzip

    import numpy as np

    def text(part: Any) -> Any:
        if part.dtype.kind == "f":
            return [f"{v:.6f}" for v in part.tolist()]
        if part.dtype.kind == "M":
            return np.char.add(np.datetime_as_string(part, unit), "Z").tolist()
        return part.astype(str).tolist()

    n = len(columns["lat"])
    whole = "time" not in columns or not (columns["time"].astype(np.int64) % 1000).any()
    unit: Any = "s" if whole else "ms"
    with (
        gzip.open(path, "wb", compresslevel=6) if path.suffix == ".gz" else path.open("wb") as file
    ):
        file.write((",".join(columns) + "\n").encode())
        for a in range(0, n, 1 << 16):
            parts = (text(column[a : a + (1 << 16)]) for column in columns.values())
            file.write(("\n".join(map(",".join, zip(*parts, strict=True))) + "\n").encode())


def _run(options: argparse.Namespace) -> None:
    import numpy as np

    from pglp_fast._util.times import moment
    from pglp_fast.errors import InvalidParameter
    from pglp_fast.pipeline import paths
    from pglp_fast.pipeline.maps import describe
    from pglp_fast.synthetic import CATEGORIES, synthetic_city

    from . import maps, terminal

    out, places = Path(options.output), None if options.places is None else Path(options.places)
    kind = next((e for e in (".parquet", ".csv.gz", ".csv") if out.name.lower().endswith(e)), None)
    if kind is None:
        raise InvalidParameter(f"{out}: name the table .csv, .csv.gz or .parquet")
    for path in (out, places):
        if path is not None:
            paths.refuse_existing(path, options.force)
    start = moment(options.start, "--start")
    grid = maps.grid_of(options.bounds, options.cell_km)
    # its own origin is not used
    city = synthetic_city(grid.rows, grid.cols, cell_km=options.cell_km[0])
    kinds = np.array([*CATEGORIES, ""])
    columns = _people(options, city, grid, start)
    columns["place"] = kinds[city.categories[columns.pop("cell")]]
    with paths.atomic(out, options.force) as path:
        (_write_parquet if kind == ".parquet" else _write)(path, columns)
    if places is not None:
        known = np.flatnonzero(city.categories >= 0)
        at = _degrees(grid, known, np.zeros((len(known), 2)))
        with paths.atomic(places, options.force) as path:
            kept = {"lat": at[:, 0], "lon": at[:, 1], "category": kinds[city.categories[known]]}
            _write(path, kept)
    rows = len(columns["time"])
    document = {
        "table": str(out),
        "rows": rows,
        "users": options.users,
        "places": options.places,
        "seed": options.seed,
        "bounds": list(options.bounds),
    }
    text = f"{out}: {rows:,} rows of {options.users:,} users on {describe(grid)}"
    text += f"\n{places}: places with their category" if places else ""
    terminal.result(options.json, document, text)


def _people(options: argparse.Namespace, city: Any, grid: Any, start: int) -> dict[str, Any]:
    """Columns user, time, lat, lon and cell of the rows that are not left out."""
    import numpy as np

    rng = np.random.default_rng([options.seed, 1])
    cells = _walk(city.density, grid.rows, grid.cols, options.users, options.steps, rng)
    user = np.repeat(np.arange(options.users), options.steps)
    when = np.tile(start + np.arange(options.steps) * options.step, options.users)
    keep = rng.random(user.size) >= options.missing
    jitter = (rng.random((user.size, 2)) - 0.5) * 0.999  # anywhere in the cell
    chosen = cells.reshape(-1)[keep]
    place = _degrees(grid, chosen, jitter[keep])
    width = len(str(options.users - 1))
    names = np.array([f"u{number:0{width}d}" for number in range(options.users)])
    return {
        "user": names[user[keep]],
        "time": when[keep].astype("datetime64[ms]"),
        "lat": place[:, 0],
        "lon": place[:, 1],
        "cell": chosen,
    }


def _degrees(grid: Any, cells: Any, shift: Any) -> Any:
    """Latitude and longitude of the middle of each cell, moved by a share of its side."""
    import numpy as np

    return grid.projection.to_latlon(grid.xy(cells) + (0.5 + shift) * np.asarray(grid.scale))


def _write_parquet(path: Path, columns: dict[str, Any]) -> None:
    from pglp_fast._util.packages import need

    pa, parquet = need("pyarrow"), need("pyarrow.parquet")
    table = {
        **columns,
        "time": pa.array(columns["time"], pa.timestamp("ms", "UTC")),
        "lat": columns["lat"].round(6),
        "lon": columns["lon"].round(6),
    }
    parquet.write_table(pa.table(table), path)

"""``pglp-fast convert``: a table from one format to another."""

import argparse

from .options import Commands, add_json, add_output, add_prefix, add_table, command

_TEXT = """
Write a table in another format, by the name of OUT: .csv, .tsv, .txt (with .gz zipped), .parquet,
.geojson, .geoparquet (GeoParquet), .gpkg, .fgb (the last two need the extra 'geo'). All columns
stay; times become UTC. Points become two columns, and two columns points: the released places,
where there are any.
"""
_EXAMPLES = """
pglp-fast simulate -o trips.csv --users 20
pglp-fast convert trips.csv -o trips.parquet
pglp-fast release trips.csv -o private.csv --epsilon 1 --policy blocks:3 --cell-km 0.34
pglp-fast convert private.csv -o private.geojson
pglp-fast convert private.geojson -o again.csv
"""


def add(commands: Commands) -> None:
    parser = command(commands, "convert", "write a table in another format", _TEXT, _EXAMPLES)
    parser.add_argument(
        "table", metavar="TABLE", help="CSV (or .gz), Parquet, GeoParquet, GeoJSON, GeoPackage"
    )
    add_output(parser, "the table; its end says the format")
    parser.add_argument(
        "--places",
        choices=("released", "given"),
        help="which places are the points of a geographic format (default: the released ones "
        "where there are any)",
    )
    add_prefix(parser)
    add_table(parser)
    add_json(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    from pglp_fast.pipeline.convert import convert

    from . import plans
    from .terminal import note, result

    done = convert(
        options.table,
        options.output,
        places=options.places,
        prefix=options.prefix,
        overwrite=options.force,
        reading=plans.reading(options),
    )
    if done.places == "released" and {"lat", "lon"} & set(done.columns):
        note(f"{done.path} still has the true places, in lat and lon")
    document = {
        "table": str(done.path),
        "rows": done.rows,
        "columns": done.columns,
        "places": done.places,
    }
    text = f"{done.path}: {done.rows:,} rows; columns: {', '.join(done.columns)}"
    result(options.json, document, text)

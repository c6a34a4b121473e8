"""``pglp-fast release``: a table in, the same table with released places out."""

import argparse
from functools import cache

from .options import (
    POLICY_HELP,
    Commands,
    add_json,
    add_map,
    add_mechanism,
    add_mobility,
    add_output,
    add_progress,
    add_table,
    command,
    count_from,
    positive,
)

_TEXT = f"""
Release the places of a table privately. The output has the same rows and columns in the same order, and behind them
  released_lat, released_lon, released_cell   the released place (a cell's middle) and the number of its cell
  released_status     alone      released on its own: no adversary model, see below
                      step       released as a step of the user's trace (with --mobility)
                      repeat     a further row of the same step: its release once more, at no cost
                      outside    not released: off the map
                      missing    not released: no place (or, with --mobility, no time)
                      budget     not released: the user's budget is spent (--budget with --on-error skip)
                      malformed  not released: cannot be read (--on-error skip)
  released_surrogate, released_exposed        with --mobility: the true cell was not in the adversary's domain, the
                      nearest cell of it was released from (this tells of the true cell: not with --drop-true); the domain
                      was one cell that cannot be hidden

Without --mobility each row is released by itself. Every release keeps the policy, but nothing is assumed or promised
about an adversary who knows how people move and sees many rows of one user: epsilon adds up.

With --mobility the rows of a user, in the order of time, are steps of a trace, counted in the model's duration:
  - the first row of a user in a step is released; further rows in the same step repeat that release;
  - steps without a row in between are missing: the adversary's belief moves on, nothing is released or spent;
  - after more than --max-missing missing steps the belief starts again from the model's stationary distribution. That
    never rules out a cell that the steps in between would have allowed.
The model must be public knowledge: one that was fitted on the very traces that are released is not.

Times are not protected, and neither are the other columns: they are written as they are. That includes the true
places, unless --drop-true leaves these out. A status tells what it says: 'outside' that somebody was off the map.

{POLICY_HELP}

The file appears whole or not at all. While a job runs, OUT.part, OUT.journal and OUT.steps stand beside it. OUT.journal
contains the key of the noise: only you can read it, and it is deleted at the end. After an interruption (Ctrl-C, a
crash), the same command with --resume goes on with the same key, so that no row is ever released twice with fresh
noise; a changed input, model or option is refused. With --seed anyone who knows the seed can subtract the noise.
"""
_EXAMPLES = """
pglp-fast simulate -o history.csv --users 200 --seed 1
pglp-fast simulate -o trips.csv --users 50 --seed 2 --places places.csv
pglp-fast release trips.csv -o alone.csv --epsilon 1 --policy blocks:3 --cell-km 0.34
pglp-fast fit history.csv -o model.npz --cell-km 0.34
pglp-fast release trips.csv -o private.csv --epsilon 1 --policy blocks:3 --mobility model.npz --drop-true
pglp-fast release trips.csv -o food.csv --epsilon 0.5 --policy categories:6 --labels places.csv --cell-km 0.34 --mechanism plm

all of it from a file, job.toml; options on the command line override it, unknown keys are errors:
  table = "trips.csv"
  output = "private.csv"
  epsilon = 1.0
  policy = "blocks:3"
  mobility = "model.npz"
  columns = { user = "user", lat = "lat", lon = "lon" }
pglp-fast release --config job.toml --force
"""


def add(commands: Commands) -> None:
    parser = command(commands, "release", "release the places of a table privately", _TEXT, _EXAMPLES)
    _add_options(parser)
    parser.set_defaults(run=_run)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("table", metavar="TABLE", nargs="?", help="CSV (any delimiter, .gz or not) or Parquet")
    parser.add_argument("--table", dest="table_option", metavar="TABLE", help=argparse.SUPPRESS)  # the key of a --config file
    add_output(parser, "where the table goes, in the format of TABLE")
    parser.add_argument(
        "--config", metavar="FILE", help="options from a TOML file; relative paths are from here, not from the file"
    )
    add_mechanism(parser)
    add_map(parser, from_table=True, from_model=True)
    add_mobility(parser)
    limits = parser.add_argument_group("limits and errors")
    limits.add_argument(
        "--budget", type=positive, metavar="E", help="total epsilon of a user in this table; rows beyond it are not released"
    )
    limits.add_argument(
        "--on-error", choices=("raise", "skip"), default="raise",
        help="a row that cannot be read, or is beyond the budget: stop before any output appears, or keep it unreleased "
        "and go on (default: raise)",
    )  # fmt: skip
    limits.add_argument("--seed", type=count_from(0), metavar="N", help="for results that repeat; not private: see above")
    limits.add_argument("--resume", action="store_true", help="go on with the job that was interrupted, if there is one")
    add_table(parser)
    writing = parser.add_argument_group("writing")
    writing.add_argument("--drop-true", action="store_true", help="leave out the columns of the true latitude and longitude")
    writing.add_argument("--prefix", default="released_", metavar="TEXT", help="how new columns start (default: released_)")
    writing.add_argument(
        "--batch-rows", type=count_from(1), default=1 << 17, metavar="N", help="rows held at a time (default: 131072)"
    )
    add_json(parser)
    add_progress(parser)


@cache
def option_kinds() -> dict[str, str]:
    """Keys that a --config file may have: "flag" or "value"."""
    parser = argparse.ArgumentParser(add_help=False)
    _add_options(parser)
    kinds = {}
    for action in parser._actions:
        for name in action.option_strings:
            if name.startswith("--") and name != "--config":
                kinds[name.removeprefix("--")] = "flag" if action.nargs == 0 else "value"
    return kinds


def _run(options: argparse.Namespace) -> None:
    from .releasing import release

    release(options)

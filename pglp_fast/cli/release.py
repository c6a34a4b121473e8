"""``pglp-fast release``: a table in, the same table with released places out."""

import argparse
from typing import Any

from .choices import add_choices, budget
from .options import (
    POLICY_HELP,
    Commands,
    add_json,
    add_map,
    add_mechanism,
    add_mobility,
    add_output,
    add_prefix,
    add_progress,
    add_table,
    command,
    count_from,
    kept,
)

_TEXT = f"""
Release the places of a table privately. The output has the same rows in the same order: the
columns that are kept (--keep; the user and the time, unless told), and behind them
  released_lat, released_lon, released_cell   the released place (a cell's middle) and the number of
                      its cell
  released_status     alone      released on its own: no adversary model, see below
                      step       released as a step of the user's trace (with --mobility)
                      repeat     a further row of the same step: its release once more, at no cost
                      outside    not released: off the map
                      missing    not released: no place (or, with --mobility, no time)
                      budget     not released: the user's budget is spent (--budget with --on-error
                                 skip)
                      malformed  not released: cannot be read (--on-error skip)
  released_exposed    with --mobility: the domain was one cell that cannot be hidden
  released_policy, released_epsilon
                      where they differ: which policy and epsilon held
  released_surrogate  with --mobility, and only beside the true places, of which it tells: the true
                      cell was not in the adversary's domain, the nearest cell of it was released
                      from

TABLE may be a folder of tables or a pattern ('trips/*.csv'); OUT is then a folder. A user is one
person in all of them.

Without --mobility each row is released by itself. Every release keeps the policy, but nothing is
assumed or promised about an adversary who knows how people move and sees many rows of one user:
epsilon adds up.

With --mobility the rows of a user, in the order of time, are steps of a trace, counted in the
model's duration:
  - the first row of a user in a step is released; further rows in the same step repeat that
    release;
  - steps without a row are silence, however long: the adversary's belief moves on through them,
    nothing is released or spent.
The model must be public knowledge: one that was fitted on the very traces that are released is not.

Policies and epsilons may differ: by a column of the table, or by a schedule (by time of day, period
of the model, person, or the place released last). They must follow from what everybody may know,
never from where somebody is: the output tells them.

Times are not protected, and neither are other columns that you keep: they are written as they are.
A status tells what it says: 'outside' that somebody was off the map.

{POLICY_HELP}

The output appears whole or not at all. A text table gets a sidecar, OUT.json, that says how it was
released; Parquet says so itself. While a job runs, a folder OUT.work stands beside it. It contains
the key of the noise and, with --mobility, true locations: only you can read it, and it is deleted
at the end. After an interruption (Ctrl-C, a crash), the same command with --resume goes on with the
same key, so that no row is ever released twice with fresh noise; a changed input, model or option
is refused. With --seed anyone who knows the seed can subtract the noise.
"""
_EXAMPLES = """
pglp-fast simulate -o history.csv --users 200 --seed 1
pglp-fast simulate -o trips.csv --users 50 --seed 2 --places places.csv
pglp-fast release trips.csv -o alone.csv --epsilon 1 --policy blocks:3 --cell-km 0.34
pglp-fast fit history.csv -o model.npz --cell-km 0.34
pglp-fast release trips.csv -o private.csv --epsilon 1 --policy blocks:3 --mobility model.npz
pglp-fast release trips.csv -o kept.csv --epsilon 1 --policy blocks:3 --mobility model.npz \\
    --keep user,time,place
pglp-fast release trips.csv -o food.csv --epsilon 0.5 --policy categories:6 --labels places.csv \\
    --cell-km 0.34 --mechanism plm
pglp-fast release trips.csv -o day1.csv --epsilon 0.5 --policy blocks:3 --mobility model.npz \\
    --budget 8 --window 1d --on-error skip --ledger spent.ledger

all of it from a file, job.toml; options on the command line override it, unknown keys are errors:
  table = "trips.csv"
  output = "private.csv"
  epsilon = 1.0
  policy = "blocks:3"
  mobility = "model.npz"
  columns = { user = "user", lat = "lat", lon = "lon" }
  policies = { night = "blocks:5" }
  schedule = { times = { "22:00-06:00" = "night" }, persons = { "3" = 0.5 } }
pglp-fast release --config job.toml --force
"""


def add(commands: Commands) -> None:
    parser = command(
        commands, "release", "release the places of a table privately", _TEXT, _EXAMPLES
    )
    _add_options(parser)
    parser.set_defaults(run=_run)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "table",
        metavar="TABLE",
        nargs="?",
        help="CSV (any delimiter, .gz or not) or Parquet; a folder or pattern of these",
    )
    parser.add_argument(
        "--table", dest="table_option", metavar="TABLE", help=argparse.SUPPRESS
    )  # the key of a --config file
    add_output(parser, "where the table goes, in the format of TABLE")
    add_mechanism(parser)
    add_map(parser, from_table=True, from_model=True)
    add_mobility(parser)
    add_choices(parser, columns=True)
    _add_limits(parser)
    add_table(parser)
    writing = parser.add_argument_group("writing")
    writing.add_argument(
        "--keep",
        type=kept,
        metavar="NAME,...",
        help="columns that stay; 'all' for every one, the true places too (default: the user and "
        "the time)",
    )
    writing.add_argument("--drop-true", action=_Gone, nargs=0, help=argparse.SUPPRESS)
    add_prefix(writing, "new")
    writing.add_argument(
        "--batch-rows",
        type=count_from(1),
        default=1 << 17,
        metavar="N",
        help="rows held at a time (default: 131072)",
    )
    add_json(parser)
    add_progress(parser)


def _add_limits(parser: argparse.ArgumentParser) -> None:
    limits = parser.add_argument_group("limits and errors")
    limits.add_argument(
        "--budget",
        type=budget,
        metavar="E",
        help="epsilon of a user in this table, in total or over any --window; rows beyond it are "
        "not released. Several: total=100,24=5,1d=8",
    )
    limits.add_argument(
        "--window",
        metavar="N",
        help="steps that the budget is for, or a duration such as 1d (with --mobility)",
    )
    limits.add_argument(
        "--ledger",
        metavar="FILE",
        help="a file where releases are written down before they are made: the budget holds for "
        "all tables, days and processes that share it. Made if it is not there; keep it private",
    )
    limits.add_argument(
        "--on-error",
        choices=("raise", "skip"),
        default="raise",
        help="a row that cannot be read, or is beyond the budget: stop before any output appears, "
        "or keep it unreleased and go on (default: raise)",
    )
    limits.add_argument(
        "--allow-outside",
        action="store_true",
        help="go on where more than half of the rows are off the map",
    )
    limits.add_argument(
        "--seed",
        type=count_from(0),
        metavar="N",
        help="for results that repeat; not private: see above",
    )
    limits.add_argument(
        "--resume",
        action="store_true",
        help="go on with the job that was interrupted, if there is one",
    )


class _Gone(argparse.Action):
    """An option that there was."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        parser.error(
            "--drop-true is gone: true places are left out unless --keep names them. --keep "
            "user,time,note keeps these columns and no others"
        )


def _run(options: argparse.Namespace) -> None:
    from pathlib import Path

    import pglp_fast as pf
    from pglp_fast.pipeline.paths import refuse_inputs, refuse_pipes, target_of
    from pglp_fast.pipeline.work_folder import work_of

    from . import maps
    from .outcome import tell
    from .plans import plan_of, reading
    from .terminal import note, warn_of_compiling

    options.table = options.table or options.table_option
    if options.table is None:
        raise pf.InvalidParameter(
            "which table? Name it behind 'release', or as table in the --config file"
        )
    if options.output == "-":
        raise pf.InvalidParameter(
            "-o - is standard output, and a file is needed, which appears whole or not at all: "
            "name one"
        )
    refuse_pipes([options.table, options.mobility, options.labels, options.ledger])
    out = target_of(Path(options.output))
    beside = [Path(f"{out}{end}") for end in ("", ".json", ".work")]
    refuse_inputs(beside, [options.config, options.mobility, options.ledger])
    warn_of_compiling("run.run_users" if options.mobility else "alias_tables.release_table")
    grid = None
    if not options.mobility:
        grid = maps.table_grid(
            options,
            lambda: pf.iter_table(options.table, on_error="skip", **reading(options)),
            tell=True,
        )
    plan = plan_of(options, grid)
    try:
        outcome = pf.release_files(
            options.table,
            options.output,
            plan,
            resume=options.resume,
            force=options.force,
            batch_rows=options.batch_rows,
            progress=options.progress or None,
        )
    except pf.PGLPError:
        raise
    except BaseException:
        if work_of(out).exists():
            note(
                f"what is done is kept in {work_of(out)}: the same command with --resume goes on, "
                "with --force starts anew"
            )
        raise
    tell(options, plan, outcome)

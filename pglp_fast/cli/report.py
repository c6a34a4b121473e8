"""``pglp-fast report``: a released table in one HTML file."""

import argparse
from typing import Any

from .options import (
    POLICY_HELP,
    Commands,
    add_json,
    add_map,
    add_mechanism,
    add_mobility,
    add_output,
    add_table,
    command,
    count_from,
)  # fmt: skip

_TEXT = f"""
Write one HTML file on a released table, which opens in any browser without a network: the policy, the certificate,
utility beside what an adversary learns, and, for a table released with --mobility, a map on which users can be followed
step by step. Give the options that the table was released with.

True places are left out, even where the table still has them, unless --with-truth puts them in: such a report is for
whoever may know where people were, and its file can be read by its owner only.

{POLICY_HELP}
"""
_EXAMPLES = """
pglp-fast simulate -o history.csv --users 200 --seed 1
pglp-fast simulate -o trips.csv --users 50 --seed 2
pglp-fast fit history.csv -o model.npz --cell-km 0.34
pglp-fast release trips.csv -o private.csv --epsilon 1 --policy blocks:3 --mobility model.npz
pglp-fast report private.csv -o report.html --epsilon 1 --policy blocks:3 --mobility model.npz
pglp-fast release trips.csv -o alone.csv --epsilon 1 --policy blocks:3 --bounds 35.68,35.82,139.60,139.77 --cell-km 0.34
pglp-fast report alone.csv -o alone.html --epsilon 1 --policy blocks:3 --bounds 35.68,35.82,139.60,139.77 --cell-km 0.34
"""


def add(commands: Commands) -> None:
    parser = command(commands, "report", "a released table in one HTML file", _TEXT, _EXAMPLES)
    parser.add_argument("table", metavar="TABLE", help="what 'release' wrote")
    add_output(parser, "the report: .html")
    parser.add_argument("--title", metavar="TEXT", help="heading of the report (default: the table's name)")
    parser.add_argument("--with-truth", action="store_true", help="put true places in; keep such a report private")
    parser.add_argument("--users", type=count_from(1), default=12, metavar="N", help="traces on the map, at most (default: 12)")
    parser.add_argument(
        "--traces", type=count_from(1), default=500, metavar="N", help="traces counted, evenly picked, at most (default: 500)"
    )
    parser.add_argument("--prefix", default="released_", metavar="TEXT", help="how released columns start (default: released_)")
    add_mechanism(parser)
    add_map(parser, from_model=True)
    add_mobility(parser)
    add_table(parser)
    add_json(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    from pathlib import Path

    import numpy as np

    from ..errors import InvalidParameter, InvalidTable
    from ..report import write_report
    from . import world
    from .paths import refuse_existing
    from .released import lay_out_traces, read_rows
    from .say import note, result, warn_of_compiling

    out = Path(options.output)
    if out.suffix.lower() not in (".html", ".htm"):
        raise InvalidParameter(f"{out}: name the report .html")
    refuse_existing(out, options.force)
    warn_of_compiling("attack.attack_users" if options.mobility else "metrics.sample_errors")
    title = options.title or Path(options.table).name
    how: dict[str, Any] = {"title": title, "overwrite": options.force}
    truth: Any
    if options.mobility:
        model = world.open_model(options.mobility)
        world.agree(options, model, options.mobility)
        grid = world.grid_on(model)
        laid = lay_out_traces(options, model, grid, options.traces)
        releaser = world.make_releaser(options, world.make_policy(options, grid), model, None)
        if laid.of > len(laid.released):
            note(f"{len(laid.released):,} of {laid.of:,} traces are counted: --traces takes more")
        shown = np.unique(np.linspace(0, len(laid.released) - 1, min(options.users, len(laid.released))).astype(np.int64))
        truth, rows = laid.truth, int((laid.released >= 0).sum())
        _need_truth(options, truth, InvalidTable)
        evidence = releaser.observe(laid.released, periods=laid.periods)
        write_report(out, releaser, evidence, truth if options.with_truth else None, users=shown, labels=laid.labels, **how)
    else:
        world.only_with_mobility(options)
        grid = world.need_grid(options)
        mechanism = world.make_mechanism(options, world.make_policy(options, grid))
        found = read_rows(options, grid)
        truth, rows = found.truth, len(found.cell)
        _need_truth(options, truth, InvalidTable)
        known = slice(None) if truth is None or not options.with_truth else truth >= 0
        true = truth[known] if options.with_truth else None
        labels = np.array(found.labels, dtype=object)[found.user[known]]  # rows of one user are one sample
        write_report(out, mechanism, found.cell[known], true, labels=labels, **how)
    document = {"report": str(out), "rows": rows, "truth": bool(options.with_truth), "bytes": out.stat().st_size}
    result(options.json, document, f"{out}: {rows:,} releases, {out.stat().st_size / 1e6:.2f} MB")


def _need_truth(options: argparse.Namespace, truth: Any, error: type[Exception]) -> None:
    if options.with_truth and truth is None:
        raise error(f"{options.table} has no true places, for --with-truth: it was released with --drop-true")

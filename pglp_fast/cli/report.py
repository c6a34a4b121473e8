"""``pglp-fast report``: a released table in one HTML file."""

import argparse
from typing import Any

import pglp_fast as pf

from .choices import add_choices
from .options import (
    POLICY_HELP,
    Commands,
    add_json,
    add_map,
    add_mechanism,
    add_mobility,
    add_output,
    add_prefix,
    add_table,
    add_traces,
    command,
    count_from,
)

_TEXT = f"""
Write one HTML file on a released table, which opens in any browser without a network: the policy,
the certificate, utility beside what an adversary learns, and, for a table released with --mobility,
a map on which users can be followed step by step. Give the options that the table was released
with.

True places are left out, even where the table still has them, unless --with-truth puts them in:
such a report is for whoever may know where people were, and its file can be read by its owner only.

{POLICY_HELP}
"""
_EXAMPLES = """
pglp-fast simulate -o history.csv --users 200 --seed 1
pglp-fast simulate -o trips.csv --users 50 --seed 2
pglp-fast fit history.csv -o model.npz --cell-km 0.34
pglp-fast release trips.csv -o private.csv --epsilon 1 --policy blocks:3 --mobility model.npz
pglp-fast report private.csv -o report.html --epsilon 1 --policy blocks:3 --mobility model.npz
pglp-fast release trips.csv -o alone.csv --epsilon 1 --policy blocks:3 \\
    --bounds 35.68,35.82,139.60,139.77 --cell-km 0.34
pglp-fast report alone.csv -o alone.html --epsilon 1 --policy blocks:3 \\
    --bounds 35.68,35.82,139.60,139.77 --cell-km 0.34
"""


def add(commands: Commands) -> None:
    parser = command(commands, "report", "a released table in one HTML file", _TEXT, _EXAMPLES)
    parser.add_argument("table", metavar="TABLE", help="what 'release' wrote")
    add_output(parser, "the report: .html")
    parser.add_argument(
        "--title", metavar="TEXT", help="heading of the report (default: the table's name)"
    )
    parser.add_argument(
        "--with-truth", action="store_true", help="put true places in; keep such a report private"
    )
    parser.add_argument(
        "--users",
        type=count_from(1),
        default=12,
        metavar="N",
        help="persons on the map, at most (default: 12)",
    )
    add_traces(parser, "persons counted, evenly picked, at most (default: 500)")
    add_prefix(parser)
    add_mechanism(parser)
    add_map(parser, from_model=True)
    add_mobility(parser)
    add_choices(parser)
    add_table(parser)
    add_json(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    from pathlib import Path

    from pglp_fast.pipeline import paths

    from . import terminal

    out = Path(options.output)
    if out.suffix.lower() not in (".html", ".htm"):
        raise pf.InvalidParameter(f"{out}: name the report .html")
    paths.refuse_existing(out, options.force)
    terminal.warn_of_compiling(
        "estimates.attack_persons" if options.mobility else "errors.sample_errors"
    )
    how = {"title": options.title or Path(options.table).name, "overwrite": options.force}
    rows = (_report_traces if options.mobility else _report_rows)(options, out, how)
    size = out.stat().st_size
    document = {
        "report": str(out),
        "rows": rows,
        "truth": bool(options.with_truth),
        "bytes": size,
    }
    terminal.result(options.json, document, f"{out}: {rows:,} releases, {size / 1e6:.2f} MB")


def _report_traces(options: argparse.Namespace, out: Any, how: dict[str, Any]) -> int:
    """On a table released with --mobility; returns how many releases it has."""
    from pglp_fast.report.inputs import in_utc

    from . import plans, read_back

    plan = plans.plan_of(options)
    read = read_back.read_traces(options, plan)
    releaser = plan.for_traces()
    note, seeded = _checked(options, plan)
    pf.write_report(
        out,
        releaser,
        releaser.observe(read.events, cycle=plan.cycle, **read.chosen),
        _wanted_truth(options, read.truth),
        users=read_back.evenly(len(read.labels), options.users),
        labels=read.labels,
        times=in_utc(read.times),
        note=note,
        seeded=seeded,
        sample=read_back.sample_in_words(len(read.labels), read.of),
        **how,
    )
    return len(read.events)


def _report_rows(options: argparse.Namespace, out: Any, how: dict[str, Any]) -> int:
    """On a table released one by one; returns how many releases it has."""
    import numpy as np

    from pglp_fast.report.inputs import in_utc

    from . import maps, plans, read_back

    plan = plans.plan_of(options, maps.need_grid(options))
    found = read_back.read_rows(options, plan.map)
    truth = _wanted_truth(options, found.truth)
    known = np.ones(len(found.cell), bool) if truth is None else truth >= 0
    note, seeded = _checked(options, plan)
    others = _under_others(found.chosen, plan.epsilon, known)
    if others.any():
        told = f"{int(others.sum()):,} rows under other policies or epsilons are left out."
        note, known = f"{note} {told}" if note else told, known & ~others
    labels = np.array(found.labels, dtype=object)[found.user[known]]  # of one user: one sample
    true = None if truth is None else truth[known]
    times = in_utc(found.ms[known].astype("datetime64[ms]"))
    pf.write_report(
        out, plan.for_rows(), found.cell[known], true, labels=labels, times=times, note=note,
        seeded=seeded, **how,
    )  # fmt: skip
    return len(found.cell)


def _under_others(chosen: dict[str, Any], epsilon: float, known: Any) -> Any:
    """Rows that were released under other policies than the default one, or another epsilon."""
    out = known & False
    if "policy" in chosen:
        out |= chosen["policy"] != "default"
    if "epsilon" in chosen:
        out |= chosen["epsilon"] != epsilon
    return out & known


def _checked(options: argparse.Namespace, plan: Any) -> tuple[str | None, bool]:
    """What the page says of a table that does not say how it was released; whether it was
    seeded."""
    from . import read_back

    facts = read_back.check_options(options.table, plan)
    if facts is None:
        return f"Nothing was checked: the table {read_back.UNCHECKED}.", False
    return None, bool(facts.get("seeded"))


def _wanted_truth(options: argparse.Namespace, truth: Any) -> Any:
    """True cells if the report shall have them, else None."""

    if not options.with_truth:
        return None
    if truth is None:
        raise pf.InvalidTable(
            f"{options.table} has no true places, for --with-truth: they were not kept "
            "when it was released (--keep)"
        )
    return truth

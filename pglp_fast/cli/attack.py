"""``pglp-fast attack``: what an adversary makes of a released table."""

import argparse
from typing import Any

from .choices import add_choices
from .options import (
    POLICY_HELP,
    Commands,
    add_json,
    add_map,
    add_mechanism,
    add_mobility,
    add_prefix,
    add_table,
    add_traces,
    command,
    share,
    utc_offset,
)

_DAY = 86_400_000  # ms
_MOST = 20_000_000  # places of persons at steps that are held at once

_TEXT = f"""
Attack a table that was released with --mobility, as an adversary would who knows the model, the
policy, the mechanism and everything released: guess where users were, and tell how far off the
guesses are. Give the options that the table was released with; where it says what they were, they
are compared. Which policy and epsilon held when, where they differ, is read from the table. If the
true places are still in the table, guesses are compared with them too, and the release's own error
(utility) stands beside the adversary's (privacy), and below it how often homes, work places, the
places visited most and the person whom a trace is of are found, before and after release.

{POLICY_HELP}
"""
_EXAMPLES = """
pglp-fast simulate -o history.csv --users 200 --seed 1
pglp-fast simulate -o trips.csv --users 50 --seed 2
pglp-fast fit history.csv -o model.npz --cell-km 0.34
pglp-fast release trips.csv -o private.csv --epsilon 1 --policy blocks:3 --mobility model.npz
pglp-fast attack private.csv --epsilon 1 --policy blocks:3 --mobility model.npz
"""


def add(commands: Commands) -> None:
    parser = command(
        commands, "attack", "what an adversary makes of a released table", _TEXT, _EXAMPLES
    )
    parser.add_argument("table", metavar="TABLE", help="what 'release --mobility' wrote")
    add_mechanism(parser)
    add_map(parser, from_model=True)
    add_mobility(parser, required=True)
    add_choices(parser)
    attack = parser.add_argument_group("attack")
    add_traces(attack, "attack at most N persons, evenly picked (default: 500)")
    attack.add_argument(
        "--confidence",
        type=share,
        default=0.95,
        metavar="C",
        help="of the intervals (default: 0.95)",
    )
    attack.add_argument(
        "--utc-offset",
        type=utc_offset,
        metavar="TIME",
        help="local time ahead of UTC, e.g. 9h: with the true places, home is then where somebody "
        "is at night, and work is looked for too",
    )
    add_prefix(attack)
    add_table(parser)
    add_json(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    from dataclasses import asdict

    from pglp_fast.adversary.attacks import attack

    from . import plans, read_back, terminal

    terminal.warn_of_compiling("estimates.attack_persons")
    plan = plans.plan_of(options)
    read = read_back.read_traces(options, plan)
    checked = read_back.check_options(options.table, plan)
    observed = plan.for_traces(0).observe(read.events, cycle=plan.cycle, **read.chosen)
    found = attack(observed, truth=read.truth)
    table = found.table(confidence=options.confidence or 0.95)
    profiles = None if read.truth is None else _profiles(options, plan, read, found.bayes)
    document = {
        **asdict(table),
        "traces": len(read.labels),
        "of_traces": read.of,
        "truth": read.truth is not None,
        "checked": checked is not None,
        "profiles": profiles and {k: [asdict(r) for r in t] for k, t in profiles.items()},
    }
    terminal.result(options.json, document, "\n".join([str(table), *_told(options, profiles)]))


def _profiles(
    options: argparse.Namespace, plan: Any, read: Any, guesses: Any
) -> dict[str, Any] | None:
    """What is found of persons from the releases, and from the best guesses; None where that would
    be too large."""
    import numpy as np

    from pglp_fast.adversary.profiles import profile_attacks

    events = read.events
    steps, column = np.unique(events.steps, return_inverse=True)
    if events.ids.size * steps.size > _MOST:
        return None
    row, hours = np.searchsorted(events.ids, events.persons), None
    if options.utc_offset is not None:
        hours = (steps * plan.step_ms + options.utc_offset) % _DAY / (_DAY / 24)

    def laid(cells: Any) -> Any:
        out = np.full((events.ids.size, steps.size), -1)
        out[row, column] = cells
        return out

    true = laid(read.truth)
    given = {"released": events.cells, "bayes": guesses}
    return {
        name: profile_attacks(plan.map, true, laid(cells), hours=hours)
        for name, cells in given.items()
    }


def _told(options: argparse.Namespace, profiles: dict[str, Any] | None) -> list[str]:
    if profiles is None:
        return []
    lines = ["found of persons: from true places (before), releases (after), without any (chance)"]
    lines += [str(profiles["released"]), "the same, after: from the best guesses (bayes) above"]
    lines.append(str(profiles["bayes"]))
    if options.utc_offset is None:
        lines.append("home: the place of most steps; --utc-offset tells nights and working hours")
    return lines

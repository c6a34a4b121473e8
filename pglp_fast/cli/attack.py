"""``pglp-fast attack``: what an adversary makes of a released table."""

import argparse

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
)

_TEXT = f"""
Attack a table that was released with --mobility, as an adversary would who knows the model, the
policy, the mechanism and everything released: guess where users were, and tell how far off the
guesses are. Give the options that the table was released with; where it says what they were, they
are compared. Which policy and epsilon held when, where they differ, is read from the table. If the
true places are still in the table, guesses are compared with them too, and the release's own error
(utility) stands beside the adversary's (privacy).

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
    table = attack(observed, truth=read.truth).table(confidence=options.confidence or 0.95)
    document = {
        **asdict(table),
        "traces": len(read.labels),
        "of_traces": read.of,
        "truth": read.truth is not None,
        "checked": checked,
    }
    terminal.result(options.json, document, str(table))

"""``pglp-fast attack``: what an adversary makes of a released table."""

import argparse

from .options import POLICY_HELP, Commands, add_json, add_map, add_mechanism, add_mobility, add_table, command, count_from, share

_TEXT = f"""
Attack a table that was released with --mobility, as an adversary would who knows the model, the policy, the mechanism and
everything released: guess where users were, and tell how far off the guesses are. Give the options that the table was
released with. If the true places are still in the table, guesses are compared with them too, and the release's own
error (utility) stands beside the adversary's (privacy).

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
    parser = command(commands, "attack", "what an adversary makes of a released table", _TEXT, _EXAMPLES)
    parser.add_argument("table", metavar="TABLE", help="what 'release --mobility' wrote")
    add_mechanism(parser)
    add_map(parser, from_model=True)
    add_mobility(parser, required=True)
    attack = parser.add_argument_group("attack")
    attack.add_argument(
        "--traces", type=count_from(1), default=500, metavar="N", help="attack at most N traces, evenly picked (default: 500)"
    )
    attack.add_argument("--confidence", type=share, default=0.95, metavar="C", help="of the intervals (default: 0.95)")
    attack.add_argument("--prefix", default="released_", metavar="TEXT", help="how released columns start (default: released_)")
    add_table(parser)
    add_json(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    from dataclasses import asdict

    from ..attacks import attack
    from . import world
    from .released import lay_out_traces
    from .say import note, result, warn_of_compiling

    warn_of_compiling("attack.attack_users")
    model = world.open_model(options.mobility)
    world.agree(options, model, options.mobility)
    grid = world.grid_on(model)
    laid = lay_out_traces(options, model, grid, options.traces)
    releaser = world.make_releaser(options, world.make_policy(options, grid), model, 0)
    found = attack(releaser.observe(laid.released, periods=laid.periods), truth=laid.truth)
    table = found.table(confidence=options.confidence or 0.95)
    if laid.of > len(laid.released):
        note(f"{len(laid.released):,} of {laid.of:,} traces were attacked: --traces takes more")
    document = {**asdict(table), "traces": len(laid.released), "of_traces": laid.of, "truth": laid.truth is not None}
    result(options.json, document, str(table))

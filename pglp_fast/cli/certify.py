"""``pglp-fast certify``: prove that a mechanism keeps its promise."""

import argparse

from .options import POLICY_HELP, Commands, add_json, add_map, add_mechanism, command

_TEXT = f"""
Prove that a mechanism keeps its promise, on the numbers that are sampled from: for every edge of
the policy and every output. The options are those of 'release'; the exit code is 0 if the promise
is proved and 1 if it is not.

This is the promise of a release without --mobility. (With --mobility the policy is repaired anew at
every step; each such policy is kept by construction, and those drawn from tables are proved when
they are made.)

{POLICY_HELP}
"""
_EXAMPLES = """
pglp-fast certify --epsilon 1 --policy blocks:3 --bounds 35.68,35.80,139.60,139.75 --cell-km 0.34
pglp-fast certify --epsilon 0.5 --policy neighbours8 --mechanism plm \\
    --bounds 35.68,35.71,139.60,139.63 --cell-km 0.5 --json
"""


def add(commands: Commands) -> None:
    parser = command(
        commands, "certify", "prove that a mechanism keeps its promise", _TEXT, _EXAMPLES
    )
    add_mechanism(parser)
    add_map(parser)
    parser.add_argument("--mobility", metavar="MODEL", help="take the map from a fitted model")
    parser.add_argument(
        "--table",
        metavar="TABLE",
        help="a released table: the options are compared with what it says about itself",
    )
    add_json(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from dataclasses import asdict

    from pglp_fast.mechanisms.certificate import certify
    from pglp_fast.pipeline.maps import describe

    from . import maps, plans, read_back, terminal

    plan = plans.plan_of(options, None if options.mobility else maps.need_grid(options))
    if options.table is not None:
        read_back.check_options(options.table, plan)
    certificate = certify(plan.for_rows())
    what = (
        f"policy {options.policy} ({plan.graph.n_edges:,} edges) on {describe(plan.map)}, "
        f"{options.mechanism}"
    )
    told = plans.headline_of(plan)
    document = {
        "headline": " ".join(told),
        **asdict(certificate),
        "policy": options.policy,
        "mechanism": options.mechanism,
        "map": plan.map.to_dict(),
    }
    terminal.result(options.json, document, "\n".join([*told, what, str(certificate)]))
    return 0 if certificate.ok else 1

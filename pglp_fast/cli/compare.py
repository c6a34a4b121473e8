"""``pglp-fast compare``: policies, mechanisms and epsilons on one's own table, before a release."""

import argparse
from pathlib import Path
from typing import Any

import pglp_fast as pf
from pglp_fast.mechanisms.registry import MECHANISMS

from .options import (
    POLICY_HELP,
    Commands,
    add_json,
    add_map,
    add_table,
    command,
    epsilons,
    mechanisms,
    names,
)

_TEXT = f"""
What would it cost, and what would it buy? For every policy, mechanism and epsilon: the expected
error of a release of TABLE, the error of the best guess of an adversary who knows how common each
place is in TABLE and sees one release, the edges of the policy that are kept among places that
occur, and the sum of epsilon of the median person and of the one with most rows. Nothing is
released. The answer tells of TABLE, as any statistic does.

{POLICY_HELP}
"""
_EXAMPLES = """
pglp-fast simulate -o trips.csv --users 50
pglp-fast compare trips.csv --cell-km 0.34
pglp-fast compare trips.csv --cell-km 0.34 --policies blocks:3,blocks:5 --epsilons 0.5,1,2 \\
    --mechanisms ppim,plm,optimal -o compare.png
"""


def add(commands: Commands) -> None:
    parser = command(
        commands, "compare", "policies, mechanisms and epsilons on your table", _TEXT, _EXAMPLES
    )
    parser.add_argument("table", metavar="TABLE", help="CSV or Parquet: true places")
    parser.add_argument(
        "--policies",
        type=names,
        default=["blocks:3", "blocks:5"],
        metavar="POLICY,...",
        help="(default: blocks:3,blocks:5)",
    )
    parser.add_argument(
        "--epsilons",
        type=epsilons,
        default=[0.5, 1.0, 2.0],
        metavar="E,...",
        help="ascending (default: 0.5,1,2)",
    )
    parser.add_argument(
        "--mechanisms",
        type=mechanisms,
        default=["ppim", "optimal"],
        metavar="NAME,...",
        help=f"of {', '.join(MECHANISMS)} (default: ppim,optimal)",
    )
    parser.add_argument("--labels", metavar="FILE", help="categories, for categories:K")
    parser.add_argument("-o", "--output", metavar="OUT", help="a picture: .png, .svg or .pdf")
    parser.add_argument("--force", action="store_true", help="overwrite OUT if it is there")
    add_map(parser, from_table=True)
    add_table(parser)
    add_json(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    import os
    from dataclasses import asdict

    from pglp_fast.pipeline import paths
    from pglp_fast.pipeline.plan_policies import spelt_policy

    from . import maps, plans, terminal

    os.environ.setdefault("MPLBACKEND", "Agg")
    out = None if options.output is None else Path(options.output)
    if out is not None:
        if out.suffix.lower() not in (".png", ".svg", ".pdf"):
            raise pf.InvalidParameter(f"{out}: name the picture .png, .svg or .pdf")
        paths.refuse_existing(out, options.force)
    tracks = pf.read_table(options.table, **plans.reading(options))
    grid = maps.table_grid(options, lambda: [tracks])
    policies = {name: spelt_policy(name, grid, options.labels) for name in options.policies}
    advice = pf.advise(
        tracks,
        grid=grid,
        policies=policies,
        epsilons=options.epsilons,
        mechanisms=options.mechanisms,
    )
    text = str(advice)
    if out is not None:
        _draw(advice, out, options.force)
        text += f"\n{out}: picture"
    terminal.result(options.json, {**asdict(advice), "picture": options.output}, text)


def _draw(advice: Any, out: Path, force: bool) -> None:
    """Privacy against utility, a curve for each policy and mechanism."""
    from pglp_fast.pipeline import paths

    epsilons, errors, adversary = advice.curves()
    if not errors:
        raise pf.TooLarge(
            "no way has an exact adversary's error, for which output sets may have 2,048 places: "
            "there is nothing to draw; compare policies of smaller components"
        )
    ax = pf.plot.privacy_utility(epsilons, errors, adversary)
    try:
        ax.set_title(
            f"{advice.count:,} rows at {advice.places:,} places\nwithout any release, the best "
            f"guess is {advice.no_release_km:.2f} km off",
            fontsize="medium",
        )
        with paths.atomic(out, force) as path:
            ax.figure.savefig(path, dpi=150, format=out.suffix[1:].lower())
    finally:
        pf.plot.pyplot().close(ax.figure)

"""``pglp-fast experiment``: the paper's experiments, and ours."""

import argparse

from .options import Commands, add_json, command, count_from

NAMES = ("mechanisms", "policies", "repair", "areas", "traces", "authors", "all")
_TEXT = """
Run one of the paper's experiments, or all of them, and write numbers (CSV), figures (PNG and SVG)
and findings to a folder: which of the paper's claims the numbers support, and which they do not.
  mechanisms  P-LM, P-PIM and others by policy and epsilon: error, and what the adversary is left
              with
  policies    E_eu, E_r and E_poi by policy
  repair      min-area against nearest-node repair, by size of the domain: error and time
  areas       the same as the authors ran it: restaurants of an area, joined within 700 m
  traces      100 timestamps of users who move, by mechanism and by policy
  authors     traces as the authors ran them: raw fixes, a known start, no repair
  all         all of these (some minutes on real data)

The data is looked for where --data says (a folder of the real data, or a table of your own), else
where the environment variable PGLP_FAST_DATA says, else in ../shared/data; without any, a made-up
city is used. The findings say which it was.
"""
_EXAMPLES = """
pglp-fast experiment policies --out results --quick
pglp-fast experiment mechanisms --out results --data synthetic --repetitions 20
"""


def add(commands: Commands) -> None:
    parser = command(commands, "experiment", "run an experiment, or all of them", _TEXT, _EXAMPLES)
    parser.add_argument("name", metavar="NAME", choices=NAMES, help="which: " + ", ".join(NAMES))
    parser.add_argument(
        "--out",
        default="pglp-experiments",
        metavar="DIR",
        help="where results go (default: pglp-experiments)",
    )
    parser.add_argument(
        "--data",
        metavar="PATH",
        help="folder of the real data, or a table of your own; 'synthetic' for the made-up city",
    )
    parser.add_argument(
        "--repetitions",
        type=count_from(2),
        default=200,
        metavar="N",
        help="runs to average over (default: 200)",
    )
    parser.add_argument(
        "--seed",
        type=count_from(0),
        default=0,
        metavar="N",
        help="for results that repeat (default: 0)",
    )
    parser.add_argument(
        "--quick", action="store_true", help="few repetitions on a small city: to see that it works"
    )
    parser.add_argument("--force", action="store_true", help="overwrite results that are there")
    parser.add_argument("--no-progress", action="store_true", help="do not show how far it is")
    add_json(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    import os
    from pathlib import Path

    os.environ.setdefault("MPLBACKEND", "Agg")
    from pglp_fast import experiments

    from .terminal import result

    found = experiments.run(
        options.name,
        out=options.out,
        data=options.data,
        repetitions=options.repetitions,
        seed=options.seed,
        quick=options.quick,
        progress=not options.no_progress,
        force=options.force,
    )
    claims = [
        {
            "experiment": one.name,
            "claim": claim.text,
            "verdict": claim.verdict,
            "size": claim.size,
        }
        for one in found
        for claim in one.claims
    ]
    lines = [
        f"{claim['verdict']:14} {claim['claim']}" + (f" ({claim['size']})" if claim["size"] else "")
        for claim in claims
    ]
    where = Path(options.out) / ("" if options.name == "all" else options.name)
    document = {
        "experiment": options.name,
        "out": str(where),
        "data": sorted({one.data for one in found}),
        "claims": claims,
    }
    result(
        options.json, document, "\n".join([*lines, f"numbers, figures and findings are in {where}"])
    )

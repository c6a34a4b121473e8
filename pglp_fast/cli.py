"""The command line: ``pglp-fast demo`` and friends."""

import argparse
import os
import sys
import time
from collections.abc import Sequence

from ._version import __version__
from .errors import PGLPError


def _demo(options: argparse.Namespace) -> None:
    os.environ.setdefault("MPLBACKEND", "Agg")  # a picture on disk needs no screen
    from .demo import run_demo

    run_demo(options.out, people=options.people, seed=options.seed)


def _warmup(options: argparse.Namespace) -> None:
    from .warmup import warm_up

    started = time.perf_counter()
    warm_up()
    print(f"Kernels compiled and cached: {time.perf_counter() - started:.1f} s. Later runs load them from disk.")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pglp-fast", description="Private locations under Policy Graph based Location Privacy.",
        epilog="examples:\n  pglp-fast demo\n  pglp-fast demo --out pictures --people 1000000\n  pglp-fast warmup",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--version", action="version", version=f"pglp-fast {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    demo = commands.add_parser("demo", help="release a made-up city: a table of errors and a picture")
    demo.add_argument("--out", default="pglp-demo", metavar="DIR", help="where the picture goes (default: pglp-demo)")
    demo.add_argument("--people", type=int, default=200_000, metavar="N", help="people in the city (default: 200000)")
    demo.add_argument("--seed", type=int, default=7, metavar="N", help="for figures that repeat (default: 7)")
    demo.set_defaults(run=_demo)
    warmup = commands.add_parser("warmup", help="compile the kernels now, so that the first release does not wait")
    warmup.set_defaults(run=_warmup)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code: 0, or 1 with one line on standard error."""
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except PGLPError as error:
        print(f"pglp-fast: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("pglp-fast: stopped", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())

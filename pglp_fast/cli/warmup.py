"""``pglp-fast warmup``: compile now what would be compiled later."""

import argparse
import time

from .options import Commands, add_json, command

_TEXT = """
Compile the kernels now, so that the first release does not wait. They are cached on disk; run it once before a pool of
processes starts.
"""


def add(commands: Commands) -> None:
    parser = command(
        commands, "warmup", "compile the kernels now, so that the first release does not wait", _TEXT, "pglp-fast warmup"
    )
    add_json(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    from ..warmup import warm_up
    from .say import result

    started = time.perf_counter()
    warm_up()
    seconds = time.perf_counter() - started
    text = f"Kernels compiled and cached: {seconds:.1f} s. Later runs load them from disk."
    result(options.json, {"seconds": round(seconds, 3)}, text)

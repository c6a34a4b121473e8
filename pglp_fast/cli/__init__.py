"""The command line: ``pglp-fast demo`` and friends, one file for each subcommand.

Exit codes: 0 fine; 1 the answer is no (a certificate that fails); 2 bad usage or input, said in one
message on standard error; 130 interrupted. Building the parser imports nothing heavy: what a
subcommand needs is imported when it runs."""

import os
import sys
from collections.abc import Sequence

from pglp_fast.errors import PGLPError

from .error_text import as_options
from .parser import arguments_of, make_parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    try:
        options = make_parser().parse_args(
            arguments_of(sys.argv[1:] if arguments is None else arguments)
        )
        return int(options.run(options) or 0)
    except SystemExit as leave:  # argparse has said why
        return leave.code if isinstance(leave.code, int) else 0
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (PGLPError, OSError, MemoryError) as error:
        print(f"pglp-fast: {as_options(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("pglp-fast: stopped", file=sys.stderr)
        return 130

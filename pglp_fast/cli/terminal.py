"""What goes to the terminal: results to standard output, everything else to standard error."""

import json
import sys
from typing import Any


def note(text: str) -> None:
    """Something that the user should know, whatever the result is."""
    print(f"note: {text}", file=sys.stderr)


def warn_of_compiling(kernel: str) -> None:
    """Say so, on a terminal, if a kernel such as "run.run_users" was never compiled here: the
    first use takes a minute."""
    from pglp_fast._util.compiled import is_compiled

    if sys.stderr.isatty() and not is_compiled(kernel):
        note(
            "compiling, once on this machine: a minute or two ('pglp-fast warmup' does all of it "
            "ahead)"
        )


def result(as_json: bool, document: dict[str, Any], text: str) -> None:
    """The answer, as one JSON document or as text."""
    from pglp_fast._util.json_values import plain

    print(
        json.dumps(plain(document), indent=2, ensure_ascii=False, allow_nan=False)
        if as_json
        else text,
        flush=True,
    )

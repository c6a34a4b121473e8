"""What goes to the terminal: results to standard output, everything else to standard error."""

import json
import math
import sys
import time
from typing import Any


def note(text: str) -> None:
    """Something that the user should know, whatever the result is."""
    print(f"note: {text}", file=sys.stderr)


def warn_of_compiling(kernel: str) -> None:
    """Say so, on a terminal, if a kernel such as "trace.step_users" was never compiled here: the first use takes a minute."""
    import os
    from pathlib import Path

    if not sys.stderr.isatty() or os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
        return
    own = Path(__file__).parents[1] / "_kernels" / "__pycache__"
    elsewhere = os.environ.get("NUMBA_CACHE_DIR")
    if not any(own.glob(f"{kernel}-*.nbi")) and not (elsewhere and any(Path(elsewhere).rglob(f"{kernel}-*.nbi"))):
        note("compiling, once on this machine: a minute or two ('pglp-fast warmup' does all of it ahead)")


def result(as_json: bool, document: dict[str, Any], text: str) -> None:
    """The answer, as one JSON document or as text."""
    print(json.dumps(plain(document), indent=2, ensure_ascii=False, allow_nan=False) if as_json else text, flush=True)


def plain(value: Any) -> Any:
    """What JSON takes: NaN and infinities become null, NumPy's numbers Python's."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


class Bar:
    """One line on standard error: the share done, how many, the rate, the time left. Nothing where nobody looks."""

    _WIDTH = 24

    def __init__(self, what: str, unit: str, *, always: bool = False):
        self.what, self.unit, self.started, self.shown, self.drawn = what, unit, time.perf_counter(), 0.0, 0
        self.live = always or sys.stderr.isatty()

    def show(self, share: float, count: int, *, last: bool = False) -> None:
        """``share`` of the work is done, ``count`` units of it."""
        now = time.perf_counter()
        if not self.live or (now - self.shown < 0.2 and not last):
            return
        self.shown, spent = now, max(now - self.started, 1e-9)
        share = min(max(share, 0.0), 1.0)
        full = round(share * self._WIDTH)
        left = f", {spent / share - spent:.0f} s left" if share > 0.01 and not last else f", {spent:.1f} s" if last else ""
        drawn = "#" * full + "." * (self._WIDTH - full)
        line = f"{self.what} [{drawn}] {share:4.0%} {count:,} {self.unit}, {count / spent:,.0f}/s{left}"
        print(f"\r{line.ljust(self.drawn)}", end="\n" if last else "", file=sys.stderr, flush=True)
        self.drawn = len(line)

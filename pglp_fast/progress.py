"""How far a long run is."""

import sys
import time


class Progress:
    """One line on standard error: done, rate, time left."""

    def __init__(self, total: int, unit: str = "user-steps"):
        self.total, self.unit, self.done, self.started, self.shown = total, unit, 0, time.perf_counter(), 0.0

    def advance(self, n: int) -> None:
        self.done += n
        now = time.perf_counter()
        if now - self.shown >= 0.2 or self.done == self.total:
            self.shown = now
            rate = self.done / max(now - self.started, 1e-9)
            left = (self.total - self.done) / max(rate, 1e-9)
            line = f"\r{self.done:,} of {self.total:,} {self.unit}, {rate:,.0f} a second, {left:.0f} s left "
            print(line, end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        print(file=sys.stderr)

"""What all experiments are told."""

import hashlib
import sys
from dataclasses import dataclass
from pathlib import Path

QUICK_REPETITIONS = 6


@dataclass(frozen=True)
class Setup:
    """Where the data is (None: the made-up city), how often to repeat, the seed, and how much to
    say."""

    folder: Path | None = None
    repetitions: int = 200
    seed: int = 0
    quick: bool = False
    progress: bool = False

    def seed_of(self, *series: object) -> int:
        """Each series has noise of its own."""
        return int.from_bytes(
            hashlib.sha256(repr((self.seed, *series)).encode()).digest()[:8], "big"
        )

    def say(self, text: str) -> None:
        if self.progress:
            print(text, file=sys.stderr, flush=True)

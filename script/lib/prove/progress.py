"""A live bar on a terminal; elsewhere a line every ten seconds."""

import sys
import time
from dataclasses import dataclass, field

WIDTH = 24
QUIET_EVERY = 10.0  # seconds


@dataclass
class Progress:
    """Says how far a run is. `total` 0 means that it ends by the clock."""

    total: int
    _began: float = field(default_factory=time.monotonic)
    _said: float = 0.0

    def show(self, done: int, rest: str) -> None:
        elapsed = time.monotonic() - self._began
        share = min(done / self.total, 1.0) if self.total else 0.0
        bar = "█" * round(share * WIDTH) + "░" * (WIDTH - round(share * WIDTH))
        of = f"/{self.total}" if self.total else ""
        text = f"{int(elapsed // 60)}:{int(elapsed % 60):02} {bar} {done}{of} tasks · {rest}"
        if sys.stdout.isatty():
            print(f"\r\033[K{text[:150]}", end="", flush=True)
        elif time.monotonic() - self._said > QUIET_EVERY:
            self._said = time.monotonic()
            print(text, flush=True)

    def say(self, text: str) -> None:
        """A line of its own, above the bar."""
        clear = "\r\033[K" if sys.stdout.isatty() else ""
        print(f"{clear}{text}", flush=True)

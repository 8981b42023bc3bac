"""What the person at the terminal reads: prefixed, aligned, coloured lines."""

import os
import sys
from pathlib import Path
from typing import IO

COLOURS = (36, 33, 32, 35, 34, 96, 93, 92, 95, 94)
RED, BOLD, DIM = 31, 1, 2
LONGEST = 4000  # characters of one line that are shown; the log file has it whole


class Output:
    """Prints lines under the name of who said them, and keeps each program's lines in a file.

    With `quiet` all lines go to the files alone, and those of the `hidden` programs always do. Colours appear on a terminal only, and
    not when NO_COLOR is set.
    """

    def __init__(
        self, *, logs: Path, names: list[str], hidden: tuple[str, ...] = (), quiet: bool = False
    ) -> None:
        self.logs = logs
        self.hidden = hidden
        self.quiet = quiet
        self.width = max([len(name) for name in names if name not in hidden], default=0)
        self.colour = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(names)}
        self.coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        self._files: dict[str, IO[str]] = {}
        logs.mkdir(mode=0o700, parents=True, exist_ok=True)

    def log_path(self, name: str) -> Path:
        return self.logs / f"{name}.log"

    def line(self, name: str, text: str) -> None:
        """One line that a program wrote."""
        self._file(name).write(text + "\n")
        if self.shows(name):
            prefix = self.paint(f"{name:<{self.width}} │", self.colour.get(name, DIM))
            self._print(f"{prefix} {text[:LONGEST]}")

    def shows(self, name: str) -> bool:
        """Whether the person sees this program's lines as they come."""
        return not self.quiet and name not in self.hidden

    def say(self, text: str, *, style: int = 0) -> None:
        """A line of the command itself: shown even when quiet."""
        self._print(self.paint(text, style))

    def paint(self, text: str, style: int) -> str:
        return f"\033[{style}m{text}\033[0m" if self.coloured and style else text

    def tail(self, name: str, count: int = 20) -> str:
        """The last lines that a program wrote, for an explanation of its failure."""
        path = self.log_path(name)
        if not path.exists():
            return ""
        return "\n".join(path.read_text(errors="replace").splitlines()[-count:])

    def close(self) -> None:
        for file in self._files.values():
            file.close()
        self._files.clear()

    def _file(self, name: str) -> IO[str]:
        if name not in self._files:
            path = self.log_path(name)
            if path.exists():
                path.replace(path.with_suffix(".log.1"))
            # Line-buffered: whoever looks into the file sees what has happened until now.
            self._files[name] = path.open("w", buffering=1, encoding="utf-8", errors="replace")
        return self._files[name]

    def _print(self, text: str) -> None:
        try:
            print(text, flush=True)
        except (BrokenPipeError, ValueError):
            # Whoever read us has gone (`| head`): the programs go on, their files keep the lines.
            self.quiet = True

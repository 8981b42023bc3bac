"""Plots as numbers that a template draws: bars that stand on each other, or lines, in a fixed box."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, log10

WIDTH, HEIGHT = 520, 170
# Room for the scale on the left, and for the names below.
LEFT, BOTTOM, TOP = 72, 20, 14
GAP = 0.22
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True)
class Series:
    """One kind of thing over time; None where nothing was there to count."""

    name: str
    values: Sequence[float | None]


@dataclass(frozen=True)
class Box:
    """A bar's rectangle. `kind` numbers its series."""

    kind: int
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Line:
    """A series as the points of a line, in pieces where something is missing."""

    kind: int
    pieces: Sequence[str]
    dots: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Mark:
    """A place on a scale and what is written there."""

    at: float
    text: str


@dataclass(frozen=True)
class Chart:
    """A plot and the same numbers as a table. `unit` is "" for plain counts."""

    key: str
    title: str
    names: Sequence[str]
    series: Sequence[Series]
    unit: str = ""
    is_lines: bool = False

    @property
    def is_empty(self) -> bool:
        return not any(value for each in self.series for value in each.values)

    @property
    def rows(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """The table: for each time its numbers in words, each with what it is of; a dash for none."""
        return [
            (name, [(each.name, self.said(each.values[n])) for each in self.series])
            for n, name in enumerate(self.names)
        ]

    def said(self, value: float | None) -> str:
        """A number as people read it."""
        if value is None:
            return "\N{EN DASH}"
        if self.unit == "$":
            return f"${value:.4f}"
        if self.unit == "s":
            return _seconds(value)
        text = f"{value:g}" if value < 10 else f"{value:,.0f}"
        return f"{text}{self.unit}"

    @property
    def boxes(self) -> list[Box]:
        """The bars, each series standing on the one before it."""
        width = self._step * (1 - GAP)
        found = []
        for n in range(len(self.names)):
            base = 0.0
            for kind, each in enumerate(self.series):
                value = each.values[n] or 0
                if value:
                    y = self._y(base + value)
                    x = self._x(n) - width / 2
                    found.append(_box(kind, x, y, width, self._y(base) - y))
                base += value
        return found

    @property
    def lines(self) -> list[Line]:
        return [self._line(kind, each) for kind, each in enumerate(self.series)]

    @property
    def scale(self) -> list[Mark]:
        """The marks of the left scale, from nothing to the top."""
        return [
            Mark(round(self._y(value), 2), self.said(value))
            for value in (0.0, self.top / 2, self.top)
        ]

    @property
    def times(self) -> list[Mark]:
        """Some of the names below: the first, the last and a few between."""
        every = max(1, -(-len(self.names) // 6))
        return [
            Mark(round(self._x(n), 2), name) for n, name in enumerate(self.names) if n % every == 0
        ]

    @property
    def top(self) -> float:
        """The scale's end: a round number that holds everything."""
        if self.is_lines:
            highest = max((value or 0 for each in self.series for value in each.values), default=0)
        else:
            stacked = zip(*(each.values for each in self.series), strict=True)
            highest = max((sum(value or 0 for value in values) for values in stacked), default=0)
        return _round_up(highest)

    def _line(self, kind: int, series: Series) -> Line:
        pieces: list[list[str]] = [[]]
        dots = []
        for n, value in enumerate(series.values):
            if value is None:
                pieces.append([])
                continue
            x, y = round(self._x(n), 2), round(self._y(value), 2)
            dots.append((x, y))
            pieces[-1].append(f"{x:g},{y:g}")
        return Line(kind, [" ".join(piece) for piece in pieces if len(piece) > 1], dots)

    @property
    def _step(self) -> float:
        return (WIDTH - LEFT) / max(1, len(self.names))

    def _x(self, n: int) -> float:
        return LEFT + self._step * (n + 0.5)

    def _y(self, value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / self.top)


def _box(kind: int, x: float, y: float, width: float, height: float) -> Box:
    return Box(kind, round(x, 2), round(y, 2), round(width, 2), round(height, 2))


def _round_up(value: float) -> float:
    if value <= 0:
        return 1.0
    power: float = 10.0 ** floor(log10(value))
    return next(step * power for step in STEPS if step * power >= value * 0.9999)


def _seconds(value: float) -> str:
    if value < 10:
        return f"{value:.1f} s"
    if value < 120:
        return f"{value:.0f} s"
    if value < 7200:
        return f"{value / 60:.0f} min"
    return f"{value / 3600:.1f} h"

"""How messages reach the workers of this run.

Each once and in order; or, with `pytest --deliveries SEED`, each twice, in an order that the seed
draws, and with old ones of other tasks between them. Nothing may differ for it but the time it takes.
"""

import random


class Deliveries:
    """The order in which a run's messages are delivered."""

    def __init__(self) -> None:
        self._dice: random.Random | None = None

    def shuffle(self, seed: int) -> None:
        """From now on every message comes twice, at any time."""
        self._dice = random.Random(seed)  # noqa: S311 - repeatable on purpose

    @property
    def are_doubled(self) -> bool:
        return self._dice is not None

    def sent(self, messages: list[int]) -> list[int]:
        """What the broker delivers of these messages."""
        return messages * 2 if self.are_doubled else list(messages)

    def take(self, waiting: list[int]) -> int:
        """The next of those that wait, which is gone then."""
        return waiting.pop(self._dice.randrange(len(waiting)) if self._dice else 0)


deliveries = Deliveries()

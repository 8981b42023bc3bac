"""What a test does at the named points of `tools.trigger`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tools import trigger
from tools.trigger import Point


@contextmanager
def at_every_point(handler: Callable[[Point], None]) -> Iterator[None]:
    """Call `handler` at each point that is reached, in whatever thread, until the block ends."""
    assert trigger.handler is None, "one handler at a time"
    trigger.handler = handler
    try:
        yield
    finally:
        trigger.handler = None

"""News from the layer below. A receiver does nothing but enqueue: the row is the truth."""

from collections.abc import Sequence
from typing import Any

from django.dispatch import receiver

from accounts import notices
from audit.models import Event
from audit.signals import recorded


@receiver(recorded, dispatch_uid="accounts.put_notices")
def put_notices(*, events: Sequence[Event], **_: Any) -> None:
    """Queue what endpoints are to be told, in the transaction of the events themselves."""
    notices.put(events)

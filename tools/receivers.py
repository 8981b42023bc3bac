"""News from the layer below."""

from typing import Any

from django.dispatch import receiver
from django.utils import timezone

from accounts.models import Shop
from accounts.signals import client_refused, demo_seeded
from tools import adapters, documents


@receiver(demo_seeded, dispatch_uid="tools.load_demo_policies")
def load_demo_policies(*, shop_id: int, **_: Any) -> None:
    """The demo shop's documents, in the command that makes the demo: it ends with all of it there."""
    documents.load(
        documents.read_folder(documents.DEMO_FOLDER),
        shop=Shop.objects.get(pk=shop_id),
        actor="system",
        now=timezone.now(),
    )


@receiver(client_refused, dispatch_uid="tools.pause_adapter")
def pause_adapter(*, shop_id: int, **_: Any) -> None:
    """A sign-in found it out before any task did."""
    adapters.pause(Shop.objects.get(pk=shop_id))

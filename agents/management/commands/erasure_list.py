"""Prints every erasure that is done, for a list kept outside the database."""

from typing import Any

from django.core.management.base import BaseCommand
from typing_extensions import override

from accounts.models import Erasure
from agents.services.erasure_list import line_of


class Command(BaseCommand):
    """Prints JSON lines that `replay_erasures` reads; changes nothing."""

    help = "Print every erasure that is done, as lines that replay_erasures reads."

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        done = Erasure.objects.select_related("shop", "customer").filter(
            ticket_id=None, done_at__isnull=False
        )
        for erasure in done.order_by("pk").iterator():
            self.stdout.write(line_of(erasure))

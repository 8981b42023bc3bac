"""Say where a shop wants to be told of events."""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from typing_extensions import override

from accounts import endpoints
from accounts.models import Endpoint, Shop

ACTOR = "system"


class Command(BaseCommand):
    help = (
        "Adds an address that is told of a shop's events, replaces its secret, disables it, or lists "
        "a shop's addresses. docs/webhooks.md says what they are sent."
    )

    @override
    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("what", choices=["add", "rotate", "disable", "list"])
        parser.add_argument("shop", help="the shop's slug")
        parser.add_argument("name", nargs="?", default="", help="what you call the endpoint")
        parser.add_argument("--url", default="", help="add: where to send, over https")
        parser.add_argument(
            "--hours", type=float, default=24.0, help="rotate: both secrets sign for so long"
        )

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        shop = Shop.objects.filter(slug=options["shop"]).first()
        if shop is None:
            raise CommandError(f"There is no shop {options['shop']}")
        try:
            self._do(shop, options)
        except endpoints.BadEndpointError as exc:
            raise CommandError(str(exc)) from exc

    def _do(self, shop: Shop, options: dict[str, Any]) -> None:
        asked = {"shop_id": shop.pk, "name": options["name"], "actor": ACTOR, "now": timezone.now()}
        match options["what"]:
            case "add":
                _, secret = endpoints.add_endpoint(url=options["url"], **asked)
                self.stdout.write(f"It is shown this once: {secret}")
            case "rotate":
                overlap = timedelta(hours=options["hours"])
                secret = endpoints.replace_secret(overlap=overlap, **asked)
                self.stdout.write(f"It is shown this once: {secret}")
            case "disable":
                endpoints.disable_endpoint(**asked)
                self.stdout.write("It is told nothing more.")
            case _:
                self._list(shop)

    def _list(self, shop: Shop) -> None:
        for endpoint in Endpoint.objects.filter(shop=shop).order_by("pk"):
            waiting = endpoint.notices.filter(delivered_at=None, given_up_at=None).count()
            state = "disabled" if endpoint.disabled_at else f"{waiting} waiting"
            failing = f", failed {endpoint.failures} times in a row" if endpoint.failures else ""
            self.stdout.write(f"{endpoint.name}  {endpoint.url}  {state}{failing}")

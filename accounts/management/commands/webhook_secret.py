"""Add and retire the secrets with which a shop signs its webhooks."""

import sys
from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from typing_extensions import override

from accounts import webhooks
from accounts.models import Shop

ACTOR = "system"


class Command(BaseCommand):
    help = (
        "Adds a webhook secret of a shop, or retires one. To rotate: add a new one, give it to the "
        "shop, and retire the old one once the shop signs with the new one."
    )

    @override
    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("what", choices=["add", "retire"])
        parser.add_argument("shop", help="the shop's slug")
        parser.add_argument("name", help="what you call the secret, e.g. 2026-03")
        parser.add_argument(
            "--stdin", action="store_true", help="add: read the secret instead of making one"
        )
        parser.add_argument(
            "--hours", type=float, default=0.0, help="retire: it still counts for so long"
        )

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        shop = Shop.objects.filter(slug=options["shop"]).first()
        if shop is None:
            raise CommandError(f"There is no shop {options['shop']}")
        try:
            if options["what"] == "add":
                self._add(shop, options["name"], reads=options["stdin"])
            else:
                self._retire(shop, options["name"], options["hours"])
        except webhooks.BadSecretError as exc:
            raise CommandError(str(exc)) from exc

    def _add(self, shop: Shop, name: str, *, reads: bool) -> None:
        secret = sys.stdin.readline().strip() if reads else webhooks.new_webhook_secret()
        webhooks.add_webhook_secret(
            shop_id=shop.pk, name=name, secret=secret, actor=ACTOR, now=timezone.now()
        )
        self.stdout.write(f"The secret {name} of {shop.name} counts from now on.")
        if not reads:
            self.stdout.write(f"It is shown this once: {secret}")

    def _retire(self, shop: Shop, name: str, hours: float) -> None:
        now = timezone.now()
        webhooks.retire_webhook_secret(
            shop_id=shop.pk, name=name, at=now + timedelta(hours=hours), actor=ACTOR, now=now
        )
        self.stdout.write(f"The secret {name} of {shop.name} is retired.")

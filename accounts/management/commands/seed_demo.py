"""Make the demo's shop and people, as soon as the pretend shop can be reached."""

import os
import time
from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from typing_extensions import override

from accounts import demo, oauth
from accounts.validators import validate_base_url

# Published, as all of the demo's secrets are, and good for its pretend shop alone.
DEMO_WEBHOOK_SECRET = "whsec_dGhlIHByZXRlbmQgc2hvcCBzaWducyBpdHMgZXZlbnRz"  # noqa: S105
PAUSE = 0.25  # seconds between two tries


class Command(BaseCommand):
    help = "Creates the demo shop, its keys and the console's demo users. Safe to run again."

    @override
    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--shop-url", required=True, help="where the pretend shop listens")
        parser.add_argument(
            "--wait", type=float, default=30.0, help="seconds to wait for the shop (default 30)"
        )

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        url = options["shop_url"].rstrip("/")
        try:
            demo.require_demo()
            validate_base_url(url)
        except demo.NotADemoError as exc:
            raise CommandError(str(exc)) from exc
        except ValidationError as exc:
            raise CommandError(f"--shop-url {url}: {' '.join(exc.messages)}") from exc
        at = demo.DemoShop(
            url=url,
            client_id=os.environ.get("ORDERS_STUB_CLIENT_ID", "countersign"),
            client_secret=os.environ.get(
                "ORDERS_STUB_CLIENT_SECRET", "demo-client-secret-of-the-pretend-shop"
            ),
            webhook_secret=os.environ.get("ORDERS_STUB_WEBHOOK_SECRET") or DEMO_WEBHOOK_SECRET,
        )
        jwks = _jwks(url, options["wait"])
        try:
            shop = demo.seed(at=at, jwks=jwks, now=timezone.now())
        except demo.NotADemoError as exc:
            raise CommandError(str(exc)) from exc
        self.stdout.write(f"The demo shop {shop.name} is ready at {shop.base_url}.")


def _jwks(url: str, wait: float) -> list[dict[str, Any]]:
    deadline = time.monotonic() + wait
    while True:
        try:
            return oauth.fetch_jwks(url)
        except oauth.ShopUnavailableError as exc:
            if time.monotonic() >= deadline:
                raise CommandError(f"{url}: {exc} (waited {wait:g} s)") from exc
            time.sleep(PAUSE)

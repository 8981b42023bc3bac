"""Stop the agent's changes at once, or let them go on."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from typing_extensions import override

from accounts.models import Shop
from tools import registry, switches


class Command(BaseCommand):
    help = (
        "Throws a kill switch (on) or releases it (off): for every shop and tool, or for those "
        "named. Nothing that the switch covers is done or sent while it is on."
    )

    @override
    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("position", choices=["on", "off"], help="on stops, off lets go on")
        parser.add_argument("--shop", metavar="SLUG", help="this shop only (default: every shop)")
        parser.add_argument(
            "--tool", default="", choices=sorted(registry.TOOLS), help="this tool only"
        )
        parser.add_argument("--reason", required=True, help="why, for the audit trail")
        parser.add_argument("--by", required=True, metavar="NAME", help="who does it")

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        change = switches.throw if options["position"] == "on" else switches.release
        try:
            switch = change(
                shop=_shop(options["shop"]),
                tool=options["tool"],
                reason=options["reason"],
                by=f"operator:{options['by']}",
                now=timezone.now(),
            )
        except switches.SwitchError as exc:
            raise CommandError(f"{exc}.") from exc
        done = "is switched off" if switch.is_off else "may be used again"
        self.stdout.write(f"{switches.in_words(switch)} {done}.")
        for other in switches.list_thrown():
            if other != switch:
                self.stdout.write(f"Also switched off: {switches.in_words(other)}.")


def _shop(slug: str | None) -> Shop | None:
    if slug is None:
        return None
    try:
        return Shop.objects.get(slug=slug)
    except Shop.DoesNotExist as exc:
        raise CommandError(f"There is no shop {slug}.") from exc

"""What a restored database needs before any process works with it."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils.dateparse import parse_datetime
from typing_extensions import override

from agents.services.restored import came_back
from tools.history import LookFirstError


class Command(BaseCommand):
    help = (
        "Run it on a database that was restored, after the migrations and before anything else: "
        "what was approved is looked up at its shop, nothing is sent before the shop was asked, no "
        "number is given out twice, and everybody signs in again."
    )

    @override
    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--since",
            required=True,
            help="the moment that was restored, as 2026-01-31T14:05:00+00:00",
        )
        parser.add_argument("--reason", default="restored from a backup", help="for the trail")
        parser.add_argument("--by", required=True, metavar="NAME", help="who does it")

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        try:
            since = parse_datetime(options["since"])
        except ValueError:
            since = None
        if since is None or since.tzinfo is None:
            raise CommandError("--since needs a date, a time and an offset from UTC.")
        try:
            came = came_back(since=since, reason=options["reason"], by=f"operator:{options['by']}")
        except LookFirstError as exc:
            raise CommandError(f"{exc}.") from exc
        self.stdout.write(
            f"Looking before every first send until {came.period.until:%Y-%m-%d %H:%M} UTC. "
            f"{came.doubted} operation{'' if came.doubted == 1 else 's'} that had been approved may "
            "have been sent and will be looked up."
        )
        self.stdout.write("Numbers go on a million later, and everybody signs in again.")

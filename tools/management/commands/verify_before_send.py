"""Look before every first send, after a restore that the database cannot tell by itself."""

from argparse import ArgumentParser
from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils.dateparse import parse_datetime
from typing_extensions import override

from tools import history
from tools.models import Attempt


class Command(BaseCommand):
    help = (
        "Says that commits may be missing since a moment, for instance because the database was "
        "put back to a backup: what was approved is looked up at its shop as if it had been sent, "
        "and nothing is sent before the shop was asked. A failover or a restore that changes "
        "PostgreSQL's timeline or system is noticed without this."
    )

    @override
    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--since", help="the moment of the backup, as 2026-01-31T14:05:00+00:00"
        )
        parser.add_argument("--end", action="store_true", help="send as usual again")
        parser.add_argument("--reason", default="", help="why, for the audit trail")
        parser.add_argument("--by", required=True, metavar="NAME", help="who does it")

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        by = f"operator:{options['by']}"
        if options["end"] == bool(options["since"]):
            raise CommandError("Give either --since or --end.")
        try:
            if options["end"]:
                history.end(by=by)
                self.stdout.write("Sending as usual again.")
                return
            reason = options["reason"] or "an operator says so"
            period = history.begin(since=_moment(options["since"]), reason=reason, by=by)
        except history.LookFirstError as exc:
            raise CommandError(f"{exc}.") from exc
        doubted = Attempt.objects.filter(
            detail=history.COMMITS_LOST, started_at__gte=period.started_at
        ).count()
        self.stdout.write(
            f"Looking before every first send until {period.until:%Y-%m-%d %H:%M} UTC; "
            f"{doubted} operation{'' if doubted == 1 else 's'} may have been sent and will be "
            "looked up."
        )


def _moment(text: str) -> datetime:
    try:
        moment = parse_datetime(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise CommandError("--since needs a date, a time and an offset from UTC.")
    return moment

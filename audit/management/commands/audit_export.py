"""Takes the trail away in a bundle, as the console does, for whoever runs the service."""

import shutil
import sys
from argparse import ArgumentParser
from datetime import datetime
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction
from django.utils import timezone
from typing_extensions import override

from audit import export_work, exports
from audit.export_models import Export, ExportForm
from audit.selectors import EventFilter

OPERATOR = 0  # the owner of what nobody in the console has asked for


class Command(BaseCommand):
    """Makes a bundle and puts it where it is wanted; exits 1 when it could not be made."""

    help = "Export the audit trail as a signed bundle. The export is itself recorded."

    @override
    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("out", type=Path, metavar="FILE", help="where the bundle goes")
        parser.add_argument("--form", choices=ExportForm.values, default=ExportForm.JSONL)
        parser.add_argument("--shop-id", type=int, help="one shop's events; without it everything")
        parser.add_argument("--since", type=_moment, help="from this moment on, RFC 3339")
        parser.add_argument("--until", type=_moment, help="before this moment, RFC 3339")
        parser.add_argument("--actor", default="operator", help="who is recorded as asking")
        parser.add_argument("--words", metavar="REASON", help="with people's words, and why")

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        export = _begin(options)
        if not export_work.make(export):
            export.refresh_from_db()
            self.stderr.write(
                export.error or "It was stopped, or another worker has taken it over."
            )
            sys.exit(1)
        fetched = exports.fetch(
            export_id=export.pk,
            owner_id=OPERATOR,
            shop_id=options["shop_id"],
            actor=options["actor"],
            now=timezone.now(),
        )
        shutil.copyfile(fetched.path, options["out"])
        digest = bytes(fetched.manifest_digest or b"").hex()
        self.stdout.write(f"{fetched.done:,} events in {options['out']}\nManifest {digest}")


@transaction.atomic
def _begin(options: dict[str, Any]) -> Export:
    """Ask for the export and take it up at once, so that no worker elsewhere makes it meanwhile."""
    try:
        export = exports.request_export(
            owner_id=OPERATOR,
            actor=options["actor"],
            wanted=EventFilter(
                shop_id=options["shop_id"], since=options["since"], until=options["until"]
            ),
            form=options["form"],
            is_redacted=options["words"] is None,
            reason=options["words"] or "",
            now=timezone.now(),
            is_queued=False,
        )
    except (exports.TooManyExportsError, exports.ReasonMissingError) as exc:
        raise CommandError(str(exc)) from exc
    taken = export_work.claim(export.pk, now=timezone.now())
    if taken is None:
        raise CommandError("Enough exports are being made now. Try again when one has ended.")
    return taken


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return timezone.make_aware(moment) if timezone.is_naive(moment) else moment

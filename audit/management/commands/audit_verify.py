"""Checks the audit trail."""

import sys
from argparse import ArgumentParser
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand
from django.db import DatabaseError, InterfaceError
from typing_extensions import override

from audit.canonical import rfc3339
from audit.heads import Head, HeadFileError, read_heads
from audit.keys import Keyring
from audit.verify import MAX_FAULTS, Report, verify

BROKEN = 1
UNCHECKED = 2


class Command(BaseCommand):
    """Says whether the trail holds; exits 0 if so, 1 if it is broken, 2 if it could not be checked."""

    help = "Check the audit trail. Exit 0: it holds. 1: it is broken. 2: it could not be checked."
    requires_system_checks = []

    @override
    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--head", type=Path, metavar="FILE", help="a published head that the chain must contain"
        )
        parser.add_argument(
            "--from-seal", type=int, default=1, metavar="N",
            help="check all seals, but read only the events of seal N and after",
        )  # fmt: skip

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        try:
            report = verify(
                heads=_heads(options["head"]),
                first_seal=options["from_seal"],
                progress=self._progress,
            )
        except (DatabaseError, InterfaceError, ImproperlyConfigured, HeadFileError) as exc:
            self.stderr.write(f"The trail could not be checked: {exc}")
            sys.exit(UNCHECKED)
        if not report.holds:
            self._say_broken(report)
            sys.exit(BROKEN)
        self._say_holds(report)

    def _progress(self, report: Report) -> None:
        if report.seals % 1000 == 0 and sys.stderr.isatty():
            self.stderr.write(f"{report.seals:,} seals, {report.sealed:,} events …")

    def _say_broken(self, report: Report) -> None:
        self.stdout.write(f"The chain is broken. {report.faults[0]}")
        for fault in report.faults[1:]:
            self.stdout.write(f"  also {fault}")
        if len(report.faults) == MAX_FAULTS:
            self.stdout.write("  Checking stopped here; there may be more.")

    def _say_holds(self, report: Report) -> None:
        sealed, seals = _count(report.sealed, "event"), _count(report.seals, "seal")
        self.stdout.write(f"The chain holds: {sealed} in {seals}.")
        if report.unsealed_since is not None:
            since = rfc3339(report.unsealed_since)
            self.stdout.write(f"Not sealed yet: {_count(report.unsealed, 'event')}, since {since}.")
        if report.erased:
            self.stdout.write(f"Erased on record: {_count(report.erased, 'personal text')}.")
        if report.heads:
            self.stdout.write(f"Found in the chain: {_count(report.heads, 'published head')}.")
        if report.newest is not None:
            self.stdout.write(
                f"Newest: seal {report.newest.pk}, {bytes(report.newest.digest).hex()}"
            )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _heads(path: Path | None) -> Iterable[Head]:
    """The heads of the file, read before anything else so that a bad file costs no long check."""
    if path is None:
        return []
    heads = list(read_heads(path, Keyring()))
    if not heads:
        raise HeadFileError(f"{path} holds no head")
    return heads

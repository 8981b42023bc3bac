"""Erases again, after a restore, whoever had been erased since the backup."""

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from typing_extensions import override

from agents.services.erasure_list import replay


class Command(BaseCommand):
    """Reads a list of erasures; exits 1 when something of it is left to do or cannot be read."""

    help = "Erase again everybody on a list of erasures whom this database has not erased since."

    @override
    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="the list that was kept outside the database")

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        try:
            with options["file"].open(encoding="utf-8", errors="replace") as lines:
                came = replay(lines, now=timezone.now())
        except OSError as exc:
            raise CommandError(f"{options['file']} cannot be read: {exc.strerror}") from exc
        self.stdout.write(f"Erased again: {came.erased}. Waiting: {came.waiting}.")
        for number in came.unreadable:
            self.stderr.write(f"Line {number} is no erasure.")
        if came.unreadable or came.waiting:
            sys.exit(1)

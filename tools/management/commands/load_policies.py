"""Load a shop's policy documents from a folder of Markdown files."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from typing_extensions import override

from accounts.models import Shop
from tools import documents


class Command(BaseCommand):
    help = "Loads the *.md files of a folder as a shop's policy documents. Safe to run again."

    @override
    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path, help="the folder with the .md files")
        parser.add_argument(
            "--shop", required=True, metavar="SLUG", help="whose documents they are"
        )
        parser.add_argument(
            "--by", default="system", metavar="ACTOR", help="who loads them, for the audit trail"
        )

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        try:
            shop = Shop.objects.get(slug=options["shop"])
            loaded = documents.load(
                documents.read_folder(options["folder"]),
                shop=shop,
                actor=options["by"],
                now=timezone.now(),
            )
        except Shop.DoesNotExist as exc:
            raise CommandError(f"There is no shop {options['shop']}.") from exc
        except documents.DocumentError as exc:
            raise CommandError(str(exc)) from exc
        self.stdout.write(f"{shop.slug}: {loaded.summary()}.")

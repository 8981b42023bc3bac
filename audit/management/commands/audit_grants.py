"""Prints the GRANTs for roles that can add to the trail and not change it."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand
from typing_extensions import override

from audit.grants import app_grants, sealer_grants


class Command(BaseCommand):
    """Prints SQL for the owner of the tables to run; changes nothing itself."""

    help = "Print the GRANTs for database roles that can add to the audit trail and not change it."
    requires_system_checks = []

    @override
    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--app", required=True, help="role of the web server and the workers")
        parser.add_argument("--sealer", required=True, help="role of the sealer")

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        for statement in app_grants(options["app"]) + sealer_grants(options["sealer"]):
            self.stdout.write(f"{statement};")

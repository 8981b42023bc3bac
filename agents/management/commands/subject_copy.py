"""Writes a customer's own copy of what we hold about them."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from typing_extensions import override

from accounts.models import Customer
from agents.subject_copy import make_copy


class Command(BaseCommand):
    """Prints JSON (docs/operations.md says what is in it); that it was made is on the trail."""

    help = "Print a customer's own copy of their data as JSON."

    @override
    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("shop", help="the shop's short name")
        parser.add_argument("customer", help="the shop's number for the customer")
        parser.add_argument(
            "--by", default="system", metavar="ACTOR", help="who asks, for the trail"
        )

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        found = Customer.objects.filter(
            shop__slug=options["shop"], external_id=options["customer"]
        ).first()
        if found is None:
            raise CommandError("There is no such customer in that shop.")
        made = make_copy(customer_id=found.pk, by=options["by"], now=timezone.now())
        self.stdout.write(made.model_dump_json(indent=2))

"""Look at everything that a running Countersign needs, and say what is wrong."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError
from typing_extensions import override

from agents import doctor


class Command(BaseCommand):
    """Exit 0 when nothing is wrong, 1 when something is. Warnings are told and do not count."""

    help = (
        "Looks at settings, database (version, migrations, rights, guards, history, clock), Redis, workers, sealer, "
        "model, shops and mail, and prints a line for each. Exit 1 when something is wrong."
    )
    # What they would say is a line of the table.
    requires_system_checks = []

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        styles = {
            doctor.OK: self.style.SUCCESS,
            doctor.WARN: self.style.WARNING,
            doctor.BAD: self.style.ERROR,
        }
        wrong = 0
        for finding in doctor.examine():
            wrong += finding.state == doctor.BAD
            state = styles[finding.state](f"{finding.state:<8}")
            self.stdout.write(f"{finding.what:<11} {state} {finding.text}")
            self.stdout.flush()
        if wrong:
            raise CommandError(f"{wrong} {'thing is' if wrong == 1 else 'things are'} wrong.")

"""Seals the audit trail."""

import signal
from argparse import ArgumentParser
from typing import Any

from django.core.checks import Tags
from django.core.management.base import BaseCommand
from django.db import connection
from typing_extensions import override

from audit import sealer

STOP = {signal.SIGTERM, signal.SIGINT}


class Command(BaseCommand):
    """Chains new audit events in signed batches, every second until it is told to stop."""

    help = "Chain new audit events in signed batches, every second, until SIGTERM or Ctrl-C."
    # Unsafe settings stop it; the other checks would only slow its start.
    requires_system_checks = [Tags.security]

    @override
    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--once", action="store_true", help="seal what is waiting, then end")
        parser.add_argument("--interval", type=float, default=1.0, help="seconds between seals")

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        if options["once"]:
            self._seal_all()
        else:
            self._run(options["interval"])

    def _seal_all(self) -> None:
        count = 0
        while seal := sealer.seal_once():
            count += seal.count
        sealer.publish()
        self.stdout.write(f"Sealed {count:,} {'event' if count == 1 else 'events'}.")

    def _run(self, interval: float) -> None:
        # The signals are fetched between two seals rather than handled, so none cuts a seal short.
        signal.pthread_sigmask(signal.SIG_BLOCK, STOP)
        self.stdout.write("The sealer is running.")
        self.stdout.flush()
        try:
            sealer.run(
                lambda seconds: signal.sigtimedwait(STOP, seconds) is not None, interval=interval
            )
        finally:
            connection.close()
        self.stdout.write("The sealer has stopped.")

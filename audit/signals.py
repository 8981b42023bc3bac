"""News for the apps above."""

from django.dispatch import Signal

# Events were recorded. Sent inside their transaction, with the rows: events.
recorded = Signal()

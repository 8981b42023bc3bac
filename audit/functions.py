"""Database functions that the constraints need."""

from django.db import models
from django.db.models import Func


class OctetLength(Func):
    """Length of a bytea column in bytes."""

    function = "octet_length"
    output_field = models.IntegerField()


class Cardinality(Func):
    """Number of elements of an array column."""

    function = "cardinality"
    output_field = models.IntegerField()


class ClockTimestamp(Func):
    """`clock_timestamp()`, which judges leases: it moves on inside a transaction, as `now()` does not."""

    template = "clock_timestamp()"
    output_field = models.DateTimeField()

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

"""What staff keep about their own work: notes, ready-made answers, views and habits.

None of it is ever told to a customer or a model; a ready-made answer is, once somebody sends it.
"""

from django.conf import settings
from django.db import models
from django.db.models import Q
from typing_extensions import override

from accounts.models import Shop

MAX_NOTE = 4000
MAX_CANNED = 4000
MAX_QUERY = 500


class Note(models.Model):
    """What staff tell each other about a case. For the console alone."""

    ticket = models.ForeignKey("agents.Ticket", on_delete=models.PROTECT, related_name="notes")
    author = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    text = models.TextField(max_length=MAX_NOTE)
    at = models.DateTimeField()

    class Meta:
        constraints = [models.CheckConstraint(name="note_says_something", condition=~Q(text=""))]
        ordering = ["pk"]

    @override
    def __str__(self) -> str:
        return f"note {self.pk} on #{self.ticket_id}"


class CannedReply(models.Model):
    """A shop's ready-made answer. Its placeholders are those of `agents.services.canned`."""

    shop = models.ForeignKey(Shop, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=80)
    text = models.TextField(max_length=MAX_CANNED)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="canned_reply_one_name", fields=["shop", "name"]),
            models.CheckConstraint(
                name="canned_reply_says_something", condition=~Q(text="") & ~Q(name="")
            ),
        ]
        ordering = ["name"]

    @override
    def __str__(self) -> str:
        return self.name


class SavedView(models.Model):
    """A filter that somebody keeps under a name: the query of a list's address."""

    class Page(models.TextChoices):
        QUEUE = "queue"
        TICKETS = "tickets"

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="saved_views"
    )
    page = models.CharField(max_length=20, choices=Page.choices)
    name = models.CharField(max_length=60)
    query = models.CharField(max_length=MAX_QUERY)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="saved_view_one_name", fields=["user", "page", "name"]),
            models.CheckConstraint(
                name="saved_view_page_valid", condition=Q(page__in=["queue", "tickets"])
            ),
        ]
        ordering = ["name"]

    @override
    def __str__(self) -> str:
        return self.name


class Habits(models.Model):
    """How somebody likes the console to behave."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="habits"
    )
    # Single keys are commands (WCAG 2.1.4: they can be switched off).
    has_keys = models.BooleanField(default=True)

    class Meta:
        verbose_name_plural = "habits"

    @override
    def __str__(self) -> str:
        return f"habits of {self.user_id}"

"""What staff keep about their own work: notes, flags, replays, ready-made answers, views
and habits.

None of it is ever told to a customer or a model; a ready-made answer is, once somebody sends it.
"""

from django.conf import settings
from django.db import models
from django.db.models import Q
from typing_extensions import override

from accounts.models import Shop

MAX_NOTE = 4000
MAX_FLAG = 500
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


class ReviewFlag(models.Model):
    """Somebody wants a task looked at again, until a colleague closes it with a word.

    For the console alone. A task has one open at most.
    """

    task = models.ForeignKey("agents.Task", on_delete=models.PROTECT, related_name="flags")
    raised_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    reason = models.TextField(max_length=MAX_FLAG)
    raised_at = models.DateTimeField()
    closed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    word = models.TextField(max_length=MAX_FLAG, blank=True)
    closed_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(name="review_flag_says_why", condition=~Q(reason="")),
            models.CheckConstraint(
                name="review_flag_closed_whole",
                condition=Q(closed_at__isnull=True, closed_by__isnull=True, word="")
                | (Q(closed_at__isnull=False, closed_by__isnull=False) & ~Q(word="")),
            ),
            models.UniqueConstraint(
                name="review_flag_one_open", fields=["task"], condition=Q(closed_at__isnull=True)
            ),
        ]
        ordering = ["pk"]

    @override
    def __str__(self) -> str:
        return f"flag {self.pk} on task-{self.task_id}"


class KeptReplay(models.Model):
    """What another prompt or model would have made of a task, beside what became of it.

    `then` and `now` are outcomes as agents.replay writes them. Made by a command, shown in the console.
    """

    task = models.ForeignKey("agents.Task", on_delete=models.PROTECT, related_name="replays")
    prompt_version = models.CharField(max_length=20)
    model = models.CharField(max_length=80)
    is_same = models.BooleanField()
    then = models.JSONField()
    now = models.JSONField()
    at = models.DateTimeField()

    class Meta:
        ordering = ["pk"]

    @override
    def __str__(self) -> str:
        return f"replay {self.pk} of task-{self.task_id}"


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

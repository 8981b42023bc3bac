"""One export of the trail: who asked for what, how far it is, and where its file is."""

from pathlib import Path
from uuid import uuid4

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.lookups import Exact
from typing_extensions import override

from audit.functions import OctetLength

REASON_LENGTH = 500


class ExportState(models.TextChoices):
    """What an export is. Queued and running ones are under way."""

    QUEUED = "queued"
    RUNNING = "running"
    READY = "ready"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


class ExportForm(models.TextChoices):
    """What stands in the bundle beside the JSON lines that prove it."""

    CSV = "csv", "CSV"
    JSONL = "jsonl", "JSON lines"
    PARQUET = "parquet", "Parquet"
    ALL = "all", "All three"


UNDER_WAY = (ExportState.QUEUED, ExportState.RUNNING)


class Export(models.Model):
    """A request for a bundle, and what became of it. The file is there while the state is ready.

    `epoch` counts the workers that took it up: one that was overtaken changes nothing any more.
    """

    id = models.UUIDField(primary_key=True, default=uuid4)
    shop_id = models.BigIntegerField(null=True)  # None: every shop
    owner_id = models.BigIntegerField()
    actor = models.CharField(max_length=200)
    form = models.CharField(max_length=10, choices=ExportForm.choices)
    filter = models.JSONField(default=dict)
    is_redacted = models.BooleanField(default=True)
    reason = models.CharField(max_length=REASON_LENGTH, blank=True)
    state = models.CharField(max_length=10, choices=ExportState.choices, default=ExportState.QUEUED)
    epoch = models.IntegerField(default=0)
    lease_until = models.DateTimeField(null=True)
    total = models.BigIntegerField(null=True)
    done = models.BigIntegerField(default=0)
    percent = models.SmallIntegerField(default=0)
    error = models.CharField(max_length=300, blank=True)
    created_at = models.DateTimeField()
    snapshot_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True)
    size = models.BigIntegerField(null=True)
    manifest_digest = models.BinaryField(null=True)

    class Meta:
        db_table = "audit_export"
        indexes = [
            models.Index(fields=["owner_id", "-created_at"], name="audit_export_owner"),
            models.Index(fields=["state", "lease_until"], name="audit_export_state"),
        ]
        constraints = [
            models.CheckConstraint(
                name="audit_export_state_valid", condition=Q(state__in=ExportState.values)
            ),
            models.CheckConstraint(
                name="audit_export_form_valid", condition=Q(form__in=ExportForm.values)
            ),
            models.UniqueConstraint(
                name="audit_export_one_under_way",
                fields=["owner_id"],
                condition=Q(state__in=UNDER_WAY),
            ),
            models.CheckConstraint(
                name="audit_export_words_need_a_reason",
                condition=Q(is_redacted=True) | ~Q(reason=""),
            ),
            models.CheckConstraint(
                name="audit_export_ready_is_whole",
                condition=~Q(state=ExportState.READY)
                | Q(
                    Q(Exact(OctetLength("manifest_digest"), 32)),
                    total=models.F("done"),
                    size__gt=0,
                    expires_at__isnull=False,
                    finished_at__isnull=False,
                ),
            ),
            models.CheckConstraint(
                name="audit_export_running_has_a_lease",
                condition=~Q(state=ExportState.RUNNING) | Q(lease_until__isnull=False, epoch__gt=0),
            ),
        ]

    @override
    def __str__(self) -> str:
        return f"export {self.pk} ({self.state})"

    @property
    def subject(self) -> str:
        """What its events on the trail are about."""
        return f"export:{self.pk}"

    @property
    def is_under_way(self) -> bool:
        return self.state in UNDER_WAY

    @property
    def path(self) -> Path:
        """Where the file of the present epoch lies, once it is ready."""
        return Path(settings.EXPORT_FOLDER) / f"{self.pk}.{self.epoch}.zip"

    @property
    def file_name(self) -> str:
        """A name that sorts by the moment that the bundle shows."""
        moment = self.snapshot_at or self.created_at
        return f"audit-{moment:%Y%m%dT%H%M%SZ}-{str(self.pk)[:8]}.zip"

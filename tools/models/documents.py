"""The shop's policy documents."""

from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVector, SearchVectorField
from django.db import models
from django.db.models import Q
from typing_extensions import override

from accounts.models import Shop


class PolicyDocument(models.Model):
    """One version of one of a shop's documents, in force between two days of the shop's calendar."""

    shop = models.ForeignKey(Shop, on_delete=models.PROTECT, related_name="+")
    slug = models.SlugField()
    title = models.CharField(max_length=200)
    version = models.PositiveIntegerField()
    effective_from = models.DateField()
    effective_to = models.DateField(null=True)
    source = models.CharField(max_length=200, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="policy_document_version_once", fields=["shop", "slug", "version"]
            ),
            models.CheckConstraint(
                name="policy_document_ends_after_start",
                condition=Q(effective_to__isnull=True)
                | Q(effective_to__gt=models.F("effective_from")),
            ),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.title} v{self.version}"


class PolicyPassage(models.Model):
    """One section of a document, found by PostgreSQL full-text search."""

    document = models.ForeignKey(PolicyDocument, on_delete=models.CASCADE, related_name="passages")
    n = models.PositiveSmallIntegerField()
    heading = models.CharField(max_length=200)
    text = models.TextField(max_length=4000)
    search = models.GeneratedField(
        expression=SearchVector("heading", "text", config="english"),
        output_field=SearchVectorField(),
        db_persist=True,
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(name="policy_passage_numbered_once", fields=["document", "n"]),
        ]
        indexes = [GinIndex(fields=["search"], name="policy_passage_search")]

    @override
    def __str__(self) -> str:
        return f"{self.document_id}/{self.n} {self.heading}"

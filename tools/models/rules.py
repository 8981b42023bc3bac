"""Verdicts of the gates, and the switches that stop tools."""

from django.db import models
from django.db.models import Q
from typing_extensions import override

from accounts.models import Customer, Shop


class Gate(models.TextChoices):
    OFFERED = "offered"
    SHAPE = "shape"
    SCOPE = "scope"
    POLICY = "policy"
    APPROVAL = "approval"
    EXECUTE = "execute"


class Finding(models.TextChoices):
    ALLOW = "allow"
    DENY = "deny"
    ASK = "ask"


class Verdict(models.Model):
    """What one gate found about one call: the rule, what it looked at, and the policy version."""

    shop = models.ForeignKey(Shop, on_delete=models.PROTECT, related_name="+")
    customer = models.ForeignKey(Customer, on_delete=models.PROTECT, related_name="+")
    task_id = models.BigIntegerField()
    step_n = models.PositiveIntegerField()
    tool = models.CharField(max_length=64)
    gate = models.CharField(max_length=20, choices=Gate.choices)
    rule = models.CharField(max_length=80)
    finding = models.CharField(max_length=10, choices=Finding.choices)
    inputs = models.JSONField(default=dict)
    policy_version = models.PositiveIntegerField()
    at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(name="verdict_gate_valid", condition=Q(gate__in=Gate.values)),
            models.CheckConstraint(
                name="verdict_finding_valid", condition=Q(finding__in=Finding.values)
            ),
        ]
        indexes = [
            models.Index(fields=["task_id", "step_n"], name="verdict_step"),
            models.Index(fields=["customer", "tool", "at"], name="verdict_rate"),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.gate}: {self.rule} {self.finding}"


class Switch(models.Model):
    """A kill switch. No shop means every shop; no tool means every tool."""

    shop = models.ForeignKey(Shop, null=True, on_delete=models.PROTECT, related_name="+")
    tool = models.CharField(max_length=64, blank=True)
    is_off = models.BooleanField(default=True)
    reason = models.CharField(max_length=500)
    changed_by = models.CharField(max_length=120)
    changed_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="switch_one_per_scope", fields=["shop", "tool"], nulls_distinct=False
            ),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.shop_id or 'every shop'}/{self.tool or 'every tool'}"

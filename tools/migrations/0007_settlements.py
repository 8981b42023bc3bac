"""Settlements by people, and cases about money that came back."""

import django.db.models.deletion
import django_fsm
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tools", "0006_shop_events"),
    ]

    operations = [
        migrations.CreateModel(
            name="Reversal",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("reason", models.CharField(blank=True, max_length=200)),
                ("opened_at", models.DateTimeField()),
                ("closed_by", models.CharField(blank=True, max_length=120)),
                ("closed_at", models.DateTimeField(null=True)),
                ("note", models.TextField(blank=True, max_length=2000)),
                (
                    "event",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tools.shopevent",
                    ),
                ),
                (
                    "operation",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="reversal",
                        to="tools.operation",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("closed_at__isnull", True)),
                        fields=["opened_at"],
                        name="reversal_open",
                    )
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("closed_at__isnull", True), ("closed_by", ""), ("note", "")),
                            models.Q(
                                ("closed_at__isnull", False),
                                ("note__regex", "\\S"),
                                models.Q(("closed_by", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="reversal_closed_by_whom_when_and_why",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Settlement",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "outcome",
                    models.CharField(
                        choices=[("succeeded", "Succeeded"), ("failed", "Failed")], max_length=20
                    ),
                ),
                ("reference", models.CharField(blank=True, max_length=120)),
                ("evidence", models.TextField(max_length=2000)),
                ("needs_second", models.BooleanField()),
                (
                    "status",
                    django_fsm.FSMField(
                        choices=[
                            ("open", "Open"),
                            ("settled", "Settled"),
                            ("turned_down", "Turned Down"),
                        ],
                        default="open",
                        max_length=20,
                        protected=True,
                    ),
                ),
                ("proposed_by", models.CharField(max_length=120)),
                ("proposed_by_user_id", models.BigIntegerField()),
                ("proposed_at", models.DateTimeField()),
                ("confirmed_by", models.CharField(blank=True, max_length=120)),
                ("confirmed_by_user_id", models.BigIntegerField(null=True)),
                ("ended_by", models.CharField(blank=True, max_length=120)),
                ("ended_at", models.DateTimeField(null=True)),
                ("reason", models.CharField(blank=True, max_length=500)),
                (
                    "operation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="settlements",
                        to="tools.operation",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("outcome__in", ["succeeded", "failed"])),
                        name="settlement_outcome_valid",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("status__in", ["open", "settled", "turned_down"])),
                        name="settlement_status_valid",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("evidence__regex", "\\S")),
                        name="settlement_has_evidence",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("outcome", "succeeded"), _negated=True),
                            ("reference__regex", "\\S"),
                            _connector="OR",
                        ),
                        name="settlement_success_has_reference",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("confirmed_by", ""), ("confirmed_by_user_id__isnull", True)),
                            models.Q(
                                ("confirmed_by_user_id__isnull", False),
                                models.Q(("confirmed_by", ""), _negated=True),
                                models.Q(
                                    ("confirmed_by_user_id", models.F("proposed_by_user_id")),
                                    _negated=True,
                                ),
                                models.Q(("confirmed_by", models.F("proposed_by")), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="settlement_confirmed_by_another",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("needs_second", True), ("status", "settled"), _negated=True),
                            ("confirmed_by_user_id__isnull", False),
                            _connector="OR",
                        ),
                        name="settlement_second_person_when_needed",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("ended_at__isnull", True), ("ended_by", ""), ("status", "open")
                            ),
                            models.Q(
                                models.Q(("status", "open"), _negated=True),
                                ("ended_at__isnull", False),
                                models.Q(("ended_by", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="settlement_ended_by_whom_and_when",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("status", "open")),
                        fields=("operation",),
                        name="settlement_one_open_per_operation",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("status", "settled")),
                        fields=("operation",),
                        name="settlement_settles_once",
                    ),
                ],
            },
        ),
    ]

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("accounts", "0007_max_running_tasks"), ("tools", "0009_not_before")]
    operations = [
        migrations.CreateModel(
            name="Adapter",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("working", "Working"),
                            ("away", "Away"),
                            ("refused", "Refused"),
                        ],
                        default="working",
                        max_length=20,
                    ),
                ),
                ("reason", models.CharField(blank=True, max_length=80)),
                ("failures", models.PositiveIntegerField(default=0)),
                ("failing_since", models.DateTimeField(null=True)),
                ("stopped_at", models.DateTimeField(null=True)),
                ("next_try_at", models.DateTimeField(null=True)),
                ("probes", models.PositiveIntegerField(default=0)),
                (
                    "shop",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="adapter",
                        to="accounts.shop",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=Q(state__in=["working", "away", "refused"]),
                        name="adapter_state_valid",
                    ),
                    models.CheckConstraint(
                        condition=Q(
                            state="working", stopped_at__isnull=True, next_try_at__isnull=True
                        )
                        | (
                            ~Q(state="working")
                            & Q(stopped_at__isnull=False, next_try_at__isnull=False)
                            & ~Q(reason="")
                        ),
                        name="adapter_stopped_with_times",
                    ),
                ],
            },
        ),
    ]

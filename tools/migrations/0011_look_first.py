from django.db import migrations, models
from django.db.models import F, Q


class Migration(migrations.Migration):
    dependencies = [("tools", "0010_adapters")]
    operations = [
        migrations.CreateModel(
            name="History",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("is_only", models.BooleanField(default=True, unique=True)),
                ("system", models.CharField(max_length=40)),
                ("timeline", models.BigIntegerField()),
                ("seen_at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(condition=Q(is_only=True), name="history_is_one"),
                ],
            },
        ),
        migrations.CreateModel(
            name="LookFirst",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("since", models.DateTimeField()),
                ("started_at", models.DateTimeField()),
                ("until", models.DateTimeField()),
                ("started_by", models.CharField(max_length=120)),
                ("reason", models.CharField(max_length=200)),
                ("is_on", models.BooleanField(default=True)),
                ("ended_at", models.DateTimeField(null=True)),
                ("ended_by", models.CharField(blank=True, max_length=120)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=Q(is_on=True),
                        fields=("is_on",),
                        name="look_first_one_at_a_time",
                    ),
                    models.CheckConstraint(
                        condition=Q(is_on=True, ended_at__isnull=True, ended_by="")
                        | (Q(is_on=False, ended_at__isnull=False) & ~Q(ended_by="")),
                        name="look_first_ended_with_time",
                    ),
                    models.CheckConstraint(
                        condition=Q(since__lte=F("started_at")) & Q(until__gt=F("started_at")),
                        name="look_first_in_order",
                    ),
                ],
            },
        ),
    ]

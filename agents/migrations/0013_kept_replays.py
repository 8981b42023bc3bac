import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0012_review_flags"),
    ]

    operations = [
        migrations.CreateModel(
            name="KeptReplay",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("prompt_version", models.CharField(max_length=20)),
                ("model", models.CharField(max_length=80)),
                ("is_same", models.BooleanField()),
                ("then", models.JSONField()),
                ("now", models.JSONField()),
                ("at", models.DateTimeField()),
                (
                    "task",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="replays",
                        to="agents.task",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
            },
        ),
    ]

"""The secrets with which shops sign what they tell us."""

import django.core.validators
import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0005_mail_from"),
    ]

    operations = [
        migrations.CreateModel(
            name="WebhookSecret",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "name",
                    models.CharField(
                        max_length=120,
                        validators=[
                            django.core.validators.RegexValidator("^[A-Za-z0-9._:=+-]{1,120}$")
                        ],
                    ),
                ),
                ("secret_encrypted", models.BinaryField()),
                ("active_from", models.DateTimeField(default=django.utils.timezone.now)),
                ("retired_at", models.DateTimeField(blank=True, null=True)),
                (
                    "shop",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="webhook_secrets",
                        to="accounts.shop",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("shop", "name"), name="webhook_secret_name_unique"
                    )
                ],
            },
        ),
    ]

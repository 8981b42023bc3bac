import django.core.validators
import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models

import accounts.models.notices


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0009_keeping"),
    ]

    operations = [
        migrations.CreateModel(
            name="Endpoint",
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
                ("url", models.CharField(max_length=500)),
                ("secret_encrypted", models.BinaryField()),
                ("former_secret_encrypted", models.BinaryField(default=bytes)),
                ("former_until", models.DateTimeField(blank=True, null=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("disabled_at", models.DateTimeField(blank=True, null=True)),
                ("failures", models.PositiveIntegerField(default=0)),
                ("rests_until", models.DateTimeField(blank=True, null=True)),
                (
                    "shop",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="endpoints",
                        to="accounts.shop",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Notice",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "public_id",
                    models.CharField(
                        default=accounts.models.notices.new_notice_id, max_length=40, unique=True
                    ),
                ),
                ("event_id", models.BigIntegerField()),
                ("type", models.CharField(max_length=100)),
                ("body", models.TextField()),
                ("created_at", models.DateTimeField()),
                ("attempts", models.PositiveIntegerField(default=0)),
                ("last_answer", models.CharField(blank=True, max_length=40)),
                ("delivered_at", models.DateTimeField(blank=True, null=True)),
                ("given_up_at", models.DateTimeField(blank=True, null=True)),
                (
                    "endpoint",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="notices",
                        to="accounts.endpoint",
                    ),
                ),
            ],
        ),
        migrations.AddConstraint(
            model_name="endpoint",
            constraint=models.UniqueConstraint(
                fields=("shop", "name"), name="endpoint_name_unique"
            ),
        ),
        migrations.AddIndex(
            model_name="notice",
            index=models.Index(
                models.F("endpoint"),
                models.F("id"),
                condition=models.Q(("delivered_at__isnull", True), ("given_up_at__isnull", True)),
                name="notice_waiting",
            ),
        ),
        migrations.AddConstraint(
            model_name="notice",
            constraint=models.UniqueConstraint(
                fields=("endpoint", "event_id"), name="notice_once_an_endpoint"
            ),
        ),
        migrations.AddConstraint(
            model_name="notice",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("delivered_at__isnull", True), ("given_up_at__isnull", True), _connector="OR"
                ),
                name="notice_ends_once",
            ),
        ),
    ]

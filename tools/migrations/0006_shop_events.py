"""What a shop tells us is taken once, and stays as it was taken."""

import django.db.models.deletion
from django.db import migrations, models

FORWARD = """
CREATE TRIGGER shop_event_guard BEFORE UPDATE OR DELETE ON tools_shopevent
  FOR EACH ROW EXECUTE FUNCTION evidence_guard();
"""
BACKWARD = "DROP TRIGGER shop_event_guard ON tools_shopevent;"


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0006_webhook_secrets"),
        ("tools", "0005_closures"),
    ]

    operations = [
        migrations.CreateModel(
            name="ShopEvent",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("event_id", models.CharField(max_length=120)),
                ("kind", models.CharField(max_length=60)),
                ("received_at", models.DateTimeField()),
                (
                    "operation",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="shop_events",
                        to="tools.operation",
                    ),
                ),
                (
                    "shop",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="accounts.shop",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("shop", "event_id"), name="shop_event_taken_once"
                    )
                ],
            },
        ),
        migrations.RunSQL(FORWARD, BACKWARD),
    ]

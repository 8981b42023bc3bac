"""An amount beside a currency is there: NULL passed the check."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tools", "0003_guards"),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="operation",
            name="operation_amount_valid",
        ),
        migrations.AddConstraint(
            model_name="operation",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("amount__gte", 1),
                        ("amount__isnull", False),
                        ("amount__lte", 1000000000000),
                        ("currency__regex", "^[A-Z]{3}$"),
                    ),
                    models.Q(
                        ("amount__isnull", True),
                        ("currency", ""),
                        models.Q(("kind", "refund"), _negated=True),
                    ),
                    _connector="OR",
                ),
                name="operation_amount_valid",
            ),
        ),
    ]

"""Two of staff are asked only where one is."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0014_two_staff_and_rights"),
        ("tools", "0011_look_first"),
    ]

    operations = [
        migrations.AddConstraint(
            model_name="operation",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("required_roles__contains", ["second_staff"]), _negated=True),
                    ("required_roles__contains", ["staff"]),
                    _connector="OR",
                ),
                name="operation_second_staff_after_staff",
            ),
        ),
    ]

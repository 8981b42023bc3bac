"""A second member of staff can be asked, and two answers about one operation come from two people.

What is dropped is put back wider in the same transaction; the column itself stays as it was.
"""

from django.db import migrations, models

STAFF = ["staff", "second_staff"]


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0006_attention"),
        ("tools", "0012_second_staff_after_staff"),
    ]

    operations = [
        migrations.RemoveConstraint(model_name="approval", name="approval_role_valid"),
        migrations.RemoveConstraint(
            model_name="approval", name="approval_rejection_by_staff_has_reason"
        ),
        migrations.RemoveConstraint(model_name="approval", name="approval_staff_decision_has_user"),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name="approval",
                    name="role",
                    field=models.CharField(
                        choices=[
                            ("customer", "Customer"),
                            ("staff", "Staff"),
                            ("second_staff", "Second Staff"),
                        ],
                        max_length=20,
                    ),
                ),
            ],
        ),
        migrations.AddConstraint(
            model_name="approval",
            constraint=models.CheckConstraint(
                condition=models.Q(("role__in", ["customer", *STAFF])),
                name="approval_role_valid",
            ),
        ),
        migrations.AddConstraint(
            model_name="approval",
            constraint=models.UniqueConstraint(
                fields=("operation", "decided_by_user_id"),
                name="approval_two_staff_are_two_people",
            ),
        ),
        migrations.AddConstraint(
            model_name="approval",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("role__in", STAFF), ("status", "rejected"), _negated=True),
                    models.Q(("reason", ""), _negated=True),
                    _connector="OR",
                ),
                name="approval_rejection_by_staff_has_reason",
            ),
        ),
        migrations.AddConstraint(
            model_name="approval",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("role__in", STAFF),
                        ("status__in", ("approved", "rejected")),
                        _negated=True,
                    ),
                    ("decided_by_user_id__isnull", False),
                    _connector="OR",
                ),
                name="approval_staff_decision_has_user",
            ),
        ),
    ]

"""Refunds on their way are looked up again; questions about changes that have ended, for staff."""

import django.db.models.deletion
from django.db import migrations, models

MAY_BE_EMPTY = "ALTER TABLE tools_reversal ALTER COLUMN event_id DROP NOT NULL"
MUST_BE_THERE = "ALTER TABLE tools_reversal ALTER COLUMN event_id SET NOT NULL"
FORWARD = """
CREATE FUNCTION inquiry_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    RAISE EXCEPTION 'inquiries are never deleted' USING ERRCODE = 'restrict_violation';
  END IF;
  IF TG_OP = 'INSERT' THEN
    IF NEW.closed_at IS NOT NULL OR NOT EXISTS (
         SELECT 1 FROM tools_operation o
         WHERE o.id = NEW.operation_id AND o.finished_at IS NOT NULL) THEN
      RAISE EXCEPTION 'only what has ended is asked about' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END IF;
  IF OLD.closed_at IS NOT NULL OR (NEW.id, NEW.operation_id, NEW.kind, NEW.opened_at)
     IS DISTINCT FROM (OLD.id, OLD.operation_id, OLD.kind, OLD.opened_at) THEN
    RAISE EXCEPTION 'an inquiry is closed once, and asks what it asked'
      USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER inquiry_guard BEFORE INSERT OR UPDATE OR DELETE ON tools_inquiry
  FOR EACH ROW EXECUTE FUNCTION inquiry_guard();
"""

BACKWARD = """
DROP TRIGGER inquiry_guard ON tools_inquiry;
DROP FUNCTION inquiry_guard();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("tools", "0013_transits"),
    ]

    operations = [
        migrations.CreateModel(
            name="Inquiry",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[("no_end", "No End"), ("contradicted", "Contradicted")],
                        max_length=20,
                    ),
                ),
                ("opened_at", models.DateTimeField()),
                ("closed_by", models.CharField(blank=True, max_length=120)),
                ("closed_at", models.DateTimeField(null=True)),
            ],
        ),
        migrations.AddField(
            model_name="transit",
            name="next_look_at",
            field=models.DateTimeField(null=True),
        ),
        # Looser, so that the code before goes on: it always names an event, and never reads one.
        migrations.RunSQL(MAY_BE_EMPTY, MUST_BE_THERE),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name="reversal",
                    name="event",
                    field=models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tools.shopevent",
                    ),
                )
            ]
        ),
        migrations.AddIndex(
            model_name="transit",
            index=models.Index(
                condition=models.Q(("arrived_at__isnull", True)),
                fields=["next_look_at"],
                name="transit_out",
            ),
        ),
        migrations.AddField(
            model_name="inquiry",
            name="operation",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="inquiries",
                to="tools.operation",
            ),
        ),
        migrations.AddIndex(
            model_name="inquiry",
            index=models.Index(
                condition=models.Q(("closed_at__isnull", True)),
                fields=["opened_at"],
                name="inquiry_open",
            ),
        ),
        migrations.AddConstraint(
            model_name="inquiry",
            constraint=models.UniqueConstraint(
                fields=("operation", "kind"), name="inquiry_once_of_a_kind"
            ),
        ),
        migrations.AddConstraint(
            model_name="inquiry",
            constraint=models.CheckConstraint(
                condition=models.Q(("kind__in", ["no_end", "contradicted"])),
                name="inquiry_kind_valid",
            ),
        ),
        migrations.AddConstraint(
            model_name="inquiry",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("closed_at__isnull", True), ("closed_by", "")),
                    models.Q(
                        ("closed_at__isnull", False), models.Q(("closed_by", ""), _negated=True)
                    ),
                    _connector="OR",
                ),
                name="inquiry_closed_by_whom_and_when",
            ),
        ),
        migrations.RunSQL(FORWARD, BACKWARD),
    ]

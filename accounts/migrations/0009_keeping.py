"""Erasures, which tickets they took, and holds. What stands in them changes once, or never."""

import django.db.models.deletion
from django.db import migrations, models

FORWARD = """
CREATE FUNCTION hold_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    RAISE EXCEPTION 'holds are never deleted' USING ERRCODE = 'restrict_violation';
  END IF;
  IF to_jsonb(NEW) - ARRAY['lifted_by', 'lifted_at', 'reason']
     IS DISTINCT FROM to_jsonb(OLD) - ARRAY['lifted_by', 'lifted_at', 'reason']
     OR (OLD.lifted_at IS NOT NULL
         AND (NEW.lifted_at, NEW.lifted_by) IS DISTINCT FROM (OLD.lifted_at, OLD.lifted_by))
     OR (NEW.reason IS DISTINCT FROM OLD.reason
         AND (OLD.lifted_at IS NULL OR NEW.reason <> '[erased]')) THEN
    RAISE EXCEPTION 'a hold is lifted once, and says what it said'
      USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER hold_guard BEFORE UPDATE OR DELETE ON accounts_hold
  FOR EACH ROW EXECUTE FUNCTION hold_guard();

CREATE FUNCTION erasure_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    RAISE EXCEPTION 'erasures are never deleted' USING ERRCODE = 'restrict_violation';
  END IF;
  IF TG_OP = 'INSERT' THEN
    IF NEW.done_at IS NOT NULL THEN
      RAISE EXCEPTION 'an erasure begins by being asked for' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END IF;
  IF to_jsonb(NEW) - ARRAY['done_at', 'listed_at']
     IS DISTINCT FROM to_jsonb(OLD) - ARRAY['done_at', 'listed_at']
     OR (OLD.done_at IS NOT NULL AND NEW.done_at IS DISTINCT FROM OLD.done_at)
     OR (OLD.listed_at IS NOT NULL AND NEW.listed_at IS DISTINCT FROM OLD.listed_at) THEN
    RAISE EXCEPTION 'an erasure is done once, and cannot be taken back'
      USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER erasure_guard BEFORE INSERT OR UPDATE OR DELETE ON accounts_erasure
  FOR EACH ROW EXECUTE FUNCTION erasure_guard();
"""

BACKWARD = """
DROP TRIGGER erasure_guard ON accounts_erasure;
DROP FUNCTION erasure_guard();
DROP TRIGGER hold_guard ON accounts_hold;
DROP FUNCTION hold_guard();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0008_shop_changes"),
    ]

    operations = [
        migrations.CreateModel(
            name="Erasure",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("ticket_id", models.BigIntegerField(null=True)),
                (
                    "cause",
                    models.CharField(
                        choices=[
                            ("asked", "The customer asked for it"),
                            ("shop", "The shop asked for it"),
                            ("retention", "Kept as long as the shop keeps texts"),
                            ("replay", "Erased before a backup was restored"),
                        ],
                        max_length=20,
                    ),
                ),
                ("asked_by", models.CharField(max_length=200)),
                ("asked_at", models.DateTimeField()),
                ("done_at", models.DateTimeField(null=True)),
                ("listed_at", models.DateTimeField(null=True)),
                (
                    "customer",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="erasures",
                        to="accounts.customer",
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
        ),
        migrations.CreateModel(
            name="ErasedTicket",
            fields=[
                ("ticket_id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("erased_at", models.DateTimeField()),
                (
                    "erasure",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="tickets",
                        to="accounts.erasure",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Hold",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("ticket_id", models.BigIntegerField(null=True)),
                ("reason", models.CharField(max_length=300)),
                ("placed_by", models.CharField(max_length=200)),
                ("placed_at", models.DateTimeField()),
                ("lifted_by", models.CharField(blank=True, max_length=200)),
                ("lifted_at", models.DateTimeField(null=True)),
                (
                    "customer",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="holds",
                        to="accounts.customer",
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
        ),
        migrations.AddIndex(
            model_name="erasure",
            index=models.Index(
                condition=models.Q(("done_at__isnull", True)), fields=["id"], name="erasure_to_do"
            ),
        ),
        migrations.AddIndex(
            model_name="erasure",
            index=models.Index(
                condition=models.Q(
                    ("done_at__isnull", False),
                    ("listed_at__isnull", True),
                    ("ticket_id__isnull", True),
                ),
                fields=["id"],
                name="erasure_to_list",
            ),
        ),
        migrations.AddConstraint(
            model_name="erasure",
            constraint=models.CheckConstraint(
                condition=models.Q(("cause__in", ["asked", "shop", "retention", "replay"])),
                name="erasure_cause_valid",
            ),
        ),
        migrations.AddConstraint(
            model_name="erasure",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("listed_at__isnull", True), ("done_at__isnull", False), _connector="OR"
                ),
                name="erasure_listed_when_done",
            ),
        ),
        migrations.AddConstraint(
            model_name="erasure",
            constraint=models.UniqueConstraint(
                condition=models.Q(("done_at__isnull", True)),
                fields=("customer", "ticket_id"),
                name="erasure_one_at_a_time",
                nulls_distinct=False,
            ),
        ),
        migrations.AddConstraint(
            model_name="hold",
            constraint=models.CheckConstraint(
                condition=models.Q(("reason__regex", "\\S")), name="hold_has_reason"
            ),
        ),
        migrations.AddConstraint(
            model_name="hold",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("lifted_at__isnull", True), ("lifted_by", "")),
                    models.Q(
                        ("lifted_at__isnull", False), models.Q(("lifted_by", ""), _negated=True)
                    ),
                    _connector="OR",
                ),
                name="hold_lifted_by_whom_and_when",
            ),
        ),
        migrations.AddConstraint(
            model_name="hold",
            constraint=models.UniqueConstraint(
                condition=models.Q(("lifted_at__isnull", True)),
                fields=("customer", "ticket_id"),
                name="hold_one_at_a_time",
                nulls_distinct=False,
            ),
        ),
        migrations.RunSQL(FORWARD, BACKWARD),
    ]

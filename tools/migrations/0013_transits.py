"""A refund that the shop calls pending has succeeded; where its money is stands beside it."""

import django.db.models.deletion
from django.db import migrations, models

FORWARD = """
CREATE FUNCTION transit_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    RAISE EXCEPTION 'transits are never deleted' USING ERRCODE = 'restrict_violation';
  END IF;
  IF TG_OP = 'INSERT' THEN
    IF NEW.arrived_at IS NOT NULL OR NOT EXISTS (
         SELECT 1 FROM tools_operation o
         WHERE o.id = NEW.operation_id AND o.kind = 'refund' AND o.state = 'succeeded') THEN
      RAISE EXCEPTION 'only the money of a refund that has succeeded is on its way'
        USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END IF;
  IF OLD.arrived_at IS NOT NULL OR (NEW.id, NEW.operation_id, NEW.began_at)
     IS DISTINCT FROM (OLD.id, OLD.operation_id, OLD.began_at) THEN
    RAISE EXCEPTION 'money arrives once' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER transit_guard BEFORE INSERT OR UPDATE OR DELETE ON tools_transit
  FOR EACH ROW EXECUTE FUNCTION transit_guard();
"""

BACKWARD = """
DROP TRIGGER transit_guard ON tools_transit;
DROP FUNCTION transit_guard();
"""

# The function of 0008, which ends what needs a person by the shop's own word. A refund of which a
# look-up says `pending` counts as taken there too.
SETTLED = """
CREATE OR REPLACE FUNCTION operation_is_settled_on_record() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM tools_settlement s
             WHERE s.operation_id = NEW.id AND s.status = 'settled' AND s.outcome = NEW.state
               AND (NEW.state = 'failed' OR s.reference = NEW.reference)) THEN
    RETURN NEW;
  END IF;
  IF NEW.state = 'succeeded' AND EXISTS (
       SELECT 1 FROM tools_observation o
       WHERE o.operation_id = NEW.id AND o.source IN ('look_up', 'webhook')
         AND (o.body -> 'effect' ->> 'status' = 'succeeded' OR (PENDING))
         AND o.body -> 'effect' ->> 'reference' = NEW.reference
         AND o.body -> 'effect' ->> 'kind' = NEW.kind
         AND o.body -> 'effect' ->> 'order_id' = NEW.order_id
         AND (NEW.kind <> 'refund'
              OR (o.body -> 'effect' ->> 'amount' = NEW.amount::text
                  AND o.body -> 'effect' ->> 'currency' = NEW.currency))) THEN
    RETURN NEW;
  END IF;
  RAISE EXCEPTION 'operation % needs a settlement or the shop''s own word to be %',
    NEW.idempotency_key, NEW.state USING ERRCODE = 'restrict_violation';
END $$;
"""
PENDING = "NEW.kind = 'refund' AND o.body -> 'effect' ->> 'status' = 'pending'"


class Migration(migrations.Migration):
    dependencies = [("tools", "0012_second_staff_after_staff")]
    operations = [
        migrations.CreateModel(
            name="Transit",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("began_at", models.DateTimeField()),
                ("arrived_at", models.DateTimeField(null=True)),
                (
                    "operation",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="transit",
                        to="tools.operation",
                    ),
                ),
            ],
        ),
        migrations.RunSQL(FORWARD, BACKWARD),
        migrations.RunSQL(SETTLED.replace("PENDING", PENDING), SETTLED.replace("PENDING", "false")),
    ]

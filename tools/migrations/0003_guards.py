"""An operation begins unasked, and goes back to `approved` only when certainly nothing was sent."""

from django.db import migrations

FORWARD = """
CREATE FUNCTION operation_begins() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.state <> 'awaiting_approval' OR cardinality(NEW.granted_roles) > 0 OR NEW.epoch <> 0
     OR NEW.first_sent_at IS NOT NULL THEN
    RAISE EXCEPTION 'operation % has to begin by asking', NEW.idempotency_key
      USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER operation_begins BEFORE INSERT ON tools_operation
  FOR EACH ROW EXECUTE FUNCTION operation_begins();

CREATE OR REPLACE FUNCTION operation_guard() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  held_back boolean;
BEGIN
  IF TG_OP = 'DELETE' THEN
    RAISE EXCEPTION 'operations are never deleted' USING ERRCODE = 'restrict_violation';
  END IF;
  IF (NEW.shop_id, NEW.customer_id, NEW.ticket_id, NEW.task_id, NEW.step_n, NEW.kind, NEW.order_id,
      NEW.idempotency_key, NEW.intent, NEW.seal, NEW.digest, NEW.amount, NEW.currency,
      NEW.required_roles, NEW.policy_version, NEW.created_at, NEW.expires_at)
     IS DISTINCT FROM
     (OLD.shop_id, OLD.customer_id, OLD.ticket_id, OLD.task_id, OLD.step_n, OLD.kind, OLD.order_id,
      OLD.idempotency_key, OLD.intent, OLD.seal, OLD.digest, OLD.amount, OLD.currency,
      OLD.required_roles, OLD.policy_version, OLD.created_at, OLD.expires_at) THEN
    RAISE EXCEPTION 'what was sealed in operation % never changes', OLD.idempotency_key
      USING ERRCODE = 'restrict_violation';
  END IF;
  -- An attempt without an outcome may have reached the shop.
  held_back := OLD.state = 'sending' AND NEW.state = 'approved' AND NEW.first_sent_at IS NULL
    AND NOT EXISTS (SELECT 1 FROM tools_attempt
                    WHERE operation_id = OLD.id AND outcome <> 'not_sent');
  IF OLD.first_sent_at IS NOT NULL AND NEW.first_sent_at IS DISTINCT FROM OLD.first_sent_at
     AND NOT held_back THEN
    RAISE EXCEPTION 'the first send of operation % happened once', OLD.idempotency_key
      USING ERRCODE = 'restrict_violation';
  END IF;
  IF NOT NEW.granted_roles @> OLD.granted_roles OR NEW.epoch < OLD.epoch THEN
    RAISE EXCEPTION 'grants and epochs of operation % only grow', OLD.idempotency_key
      USING ERRCODE = 'restrict_violation';
  END IF;
  IF NEW.state IS DISTINCT FROM OLD.state AND NOT (
       (OLD.state = 'awaiting_approval' AND NEW.state IN
         ('approved', 'rejected', 'expired', 'superseded', 'cancelled'))
    OR (OLD.state = 'approved' AND NEW.state IN
         ('sending', 'rejected', 'expired', 'superseded', 'cancelled'))
    OR (OLD.state = 'sending' AND NEW.state IN ('succeeded', 'failed', 'unknown', 'needs_person'))
    OR held_back
    OR (OLD.state = 'unknown' AND NEW.state IN ('sending', 'succeeded', 'failed', 'needs_person'))
    OR (OLD.state = 'needs_person' AND NEW.state IN ('succeeded', 'failed'))
  ) THEN
    RAISE EXCEPTION 'operation % cannot go from % to %',
      OLD.idempotency_key, OLD.state, NEW.state USING ERRCODE = 'restrict_violation';
  END IF;
  IF OLD.state IN ('succeeded', 'failed', 'rejected', 'expired', 'superseded', 'cancelled')
     AND NEW IS DISTINCT FROM OLD THEN
    RAISE EXCEPTION 'operation % is final', OLD.idempotency_key
      USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
"""

# The guard of 0002 with the way back to `approved` closed.
BACKWARD = (
    FORWARD[FORWARD.index("CREATE OR REPLACE") :].replace(
        "held_back := OLD.state = 'sending' AND", "held_back := false AND OLD.state = 'sending' AND"
    )
    + """
DROP TRIGGER operation_begins ON tools_operation;
DROP FUNCTION operation_begins();
"""
)


class Migration(migrations.Migration):
    dependencies = [("tools", "0002_guards")]
    operations = [migrations.RunSQL(FORWARD, BACKWARD)]

"""An operation that needs a person ends by a person's word on record, or by the shop's own."""

from django.db import migrations

FORWARD = """
CREATE FUNCTION operation_is_settled_on_record() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM tools_settlement s
             WHERE s.operation_id = NEW.id AND s.status = 'settled' AND s.outcome = NEW.state
               AND (NEW.state = 'failed' OR s.reference = NEW.reference)) THEN
    RETURN NEW;
  END IF;
  IF NEW.state = 'succeeded' AND EXISTS (
       SELECT 1 FROM tools_observation o
       WHERE o.operation_id = NEW.id AND o.source IN ('look_up', 'webhook')
         AND o.body -> 'effect' ->> 'status' = 'succeeded'
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
CREATE TRIGGER operation_is_settled_on_record BEFORE UPDATE OF state ON tools_operation
  FOR EACH ROW WHEN (OLD.state = 'needs_person' AND NEW.state IN ('succeeded', 'failed'))
  EXECUTE FUNCTION operation_is_settled_on_record();

CREATE FUNCTION settlement_guard() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  stands text;
  is_over boolean;
BEGIN
  IF TG_OP = 'DELETE' THEN
    RAISE EXCEPTION 'settlements are never deleted' USING ERRCODE = 'restrict_violation';
  END IF;
  IF TG_OP = 'INSERT' THEN
    SELECT o.state, 'staff' = ANY (o.required_roles) OR COALESCE(o.amount, 0) > s.staff_limit
      INTO stands, is_over
      FROM tools_operation o JOIN accounts_shop s ON s.id = o.shop_id WHERE o.id = NEW.operation_id;
    IF stands IS DISTINCT FROM 'needs_person' THEN
      RAISE EXCEPTION 'only an operation that needs a person is settled by one'
        USING ERRCODE = 'restrict_violation';
    END IF;
    IF is_over AND NOT NEW.needs_second THEN
      RAISE EXCEPTION 'over the limit a second person is needed'
        USING ERRCODE = 'restrict_violation';
    END IF;
    IF NEW.status <> 'open' OR NEW.confirmed_by <> '' THEN
      RAISE EXCEPTION 'a settlement begins by being proposed' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END IF;
  IF OLD.status <> 'open' THEN
    RAISE EXCEPTION 'a settlement ends once' USING ERRCODE = 'restrict_violation';
  END IF;
  IF (NEW.operation_id, NEW.outcome, NEW.reference, NEW.evidence, NEW.needs_second, NEW.proposed_by,
      NEW.proposed_by_user_id, NEW.proposed_at)
     IS DISTINCT FROM
     (OLD.operation_id, OLD.outcome, OLD.reference, OLD.evidence, OLD.needs_second, OLD.proposed_by,
      OLD.proposed_by_user_id, OLD.proposed_at) THEN
    RAISE EXCEPTION 'what a settlement says never changes' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER settlement_guard BEFORE INSERT OR UPDATE OR DELETE ON tools_settlement
  FOR EACH ROW EXECUTE FUNCTION settlement_guard();

CREATE FUNCTION reversal_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    RAISE EXCEPTION 'reversals are never deleted' USING ERRCODE = 'restrict_violation';
  END IF;
  IF TG_OP = 'INSERT' THEN
    IF (SELECT state FROM tools_operation WHERE id = NEW.operation_id)
       IS DISTINCT FROM 'succeeded' THEN
      RAISE EXCEPTION 'only what has succeeded can be reversed'
        USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END IF;
  IF OLD.closed_at IS NOT NULL OR (NEW.operation_id, NEW.event_id, NEW.reason, NEW.opened_at)
     IS DISTINCT FROM (OLD.operation_id, OLD.event_id, OLD.reason, OLD.opened_at) THEN
    RAISE EXCEPTION 'a case is closed once, and says what it said' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER reversal_guard BEFORE INSERT OR UPDATE OR DELETE ON tools_reversal
  FOR EACH ROW EXECUTE FUNCTION reversal_guard();
"""

BACKWARD = """
DROP TRIGGER reversal_guard ON tools_reversal;
DROP FUNCTION reversal_guard();
DROP TRIGGER settlement_guard ON tools_settlement;
DROP FUNCTION settlement_guard();
DROP TRIGGER operation_is_settled_on_record ON tools_operation;
DROP FUNCTION operation_is_settled_on_record();
"""


class Migration(migrations.Migration):
    dependencies = [("tools", "0007_settlements"), ("accounts", "0006_webhook_secrets")]
    operations = [migrations.RunSQL(FORWARD, BACKWARD)]

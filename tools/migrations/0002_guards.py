"""What a constraint cannot hold: final states are final, sealed bytes never change, evidence stays."""

from django.db import migrations

FORWARD = """
CREATE FUNCTION operation_guard() RETURNS trigger LANGUAGE plpgsql AS $$
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
  IF OLD.first_sent_at IS NOT NULL AND NEW.first_sent_at IS DISTINCT FROM OLD.first_sent_at THEN
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
CREATE TRIGGER operation_guard BEFORE UPDATE OR DELETE ON tools_operation
  FOR EACH ROW EXECUTE FUNCTION operation_guard();

CREATE FUNCTION attempt_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' OR OLD.outcome <> '' OR (NEW.operation_id, NEW.n, NEW.epoch,
      NEW.request_digest, NEW.started_at) IS DISTINCT FROM (OLD.operation_id, OLD.n, OLD.epoch,
      OLD.request_digest, OLD.started_at) THEN
    RAISE EXCEPTION 'a finished attempt never changes' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER attempt_guard BEFORE UPDATE OR DELETE ON tools_attempt
  FOR EACH ROW EXECUTE FUNCTION attempt_guard();

CREATE FUNCTION evidence_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER observation_guard BEFORE UPDATE OR DELETE ON tools_observation
  FOR EACH ROW EXECUTE FUNCTION evidence_guard();
CREATE TRIGGER verdict_guard BEFORE UPDATE OR DELETE ON tools_verdict
  FOR EACH ROW EXECUTE FUNCTION evidence_guard();
"""

BACKWARD = """
DROP TRIGGER verdict_guard ON tools_verdict;
DROP TRIGGER observation_guard ON tools_observation;
DROP FUNCTION evidence_guard();
DROP TRIGGER attempt_guard ON tools_attempt;
DROP FUNCTION attempt_guard();
DROP TRIGGER operation_guard ON tools_operation;
DROP FUNCTION operation_guard();
"""


class Migration(migrations.Migration):
    dependencies = [("tools", "0001_initial")]
    operations = [migrations.RunSQL(FORWARD, BACKWARD)]

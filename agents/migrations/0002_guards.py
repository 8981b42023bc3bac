"""A finished step and a said message never change; steps have no gap; an ended task stays ended."""

from django.db import migrations

FORWARD = """
CREATE FUNCTION step_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    IF NEW.n > 1 AND NOT EXISTS (
      SELECT 1 FROM agents_step WHERE task_id = NEW.task_id AND n = NEW.n - 1
        AND status = 'finished') THEN
      RAISE EXCEPTION 'step % of task % has no finished step before it', NEW.n, NEW.task_id
        USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END IF;
  IF TG_OP = 'DELETE' OR OLD.status = 'finished' THEN
    RAISE EXCEPTION 'a finished step never changes' USING ERRCODE = 'restrict_violation';
  END IF;
  IF (NEW.task_id, NEW.n, NEW.kind, NEW.tool, NEW.call_id, NEW.arguments)
     IS DISTINCT FROM (OLD.task_id, OLD.n, OLD.kind, OLD.tool, OLD.call_id, OLD.arguments)
     OR (OLD.heard_seq IS NOT NULL AND NEW.heard_seq IS DISTINCT FROM OLD.heard_seq) THEN
    RAISE EXCEPTION 'what a step is never changes' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER step_guard BEFORE INSERT OR UPDATE OR DELETE ON agents_step
  FOR EACH ROW EXECUTE FUNCTION step_guard();

CREATE FUNCTION task_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    RAISE EXCEPTION 'tasks are never deleted' USING ERRCODE = 'restrict_violation';
  END IF;
  IF OLD.status IN ('succeeded', 'failed', 'cancelled', 'handed_off')
     AND NEW.status IS DISTINCT FROM OLD.status THEN
    RAISE EXCEPTION 'task % has ended', OLD.id USING ERRCODE = 'restrict_violation';
  END IF;
  IF NEW.epoch < OLD.epoch OR NEW.tokens_spent < OLD.tokens_spent
     OR NEW.cost_spent < OLD.cost_spent OR NEW.active_ms < OLD.active_ms THEN
    RAISE EXCEPTION 'epochs and budgets of task % never run backwards', OLD.id
      USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER task_guard BEFORE UPDATE OR DELETE ON agents_task
  FOR EACH ROW EXECUTE FUNCTION task_guard();

CREATE FUNCTION message_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'what was said stays said' USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER message_guard BEFORE UPDATE OR DELETE ON agents_message
  FOR EACH ROW EXECUTE FUNCTION message_guard();
"""

BACKWARD = """
DROP TRIGGER message_guard ON agents_message;
DROP FUNCTION message_guard();
DROP TRIGGER task_guard ON agents_task;
DROP FUNCTION task_guard();
DROP TRIGGER step_guard ON agents_step;
DROP FUNCTION step_guard();
"""


class Migration(migrations.Migration):
    dependencies = [("agents", "0001_initial")]
    operations = [migrations.RunSQL(FORWARD, BACKWARD)]

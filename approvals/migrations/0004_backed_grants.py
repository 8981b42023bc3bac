"""A role is granted only by an approval of these very bytes: no other hand can write a yes."""

from django.db import migrations

FORWARD = """
CREATE FUNCTION operation_grants_are_backed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (
    SELECT 1 FROM unnest(NEW.granted_roles) AS granted (role)
    WHERE granted.role <> ALL (OLD.granted_roles) AND NOT EXISTS (
      SELECT 1 FROM approvals_approval a
      WHERE a.operation_id = NEW.id AND a.role = granted.role AND a.status = 'approved'
        AND a.digest = NEW.digest)) THEN
    RAISE EXCEPTION 'a grant of operation % has no approval behind it', NEW.idempotency_key
      USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER operation_grants_are_backed BEFORE UPDATE OF granted_roles ON tools_operation
  FOR EACH ROW EXECUTE FUNCTION operation_grants_are_backed();
"""

BACKWARD = """
DROP TRIGGER operation_grants_are_backed ON tools_operation;
DROP FUNCTION operation_grants_are_backed();
"""


class Migration(migrations.Migration):
    dependencies = [("approvals", "0003_guards"), ("tools", "0003_guards")]
    operations = [migrations.RunSQL(FORWARD, BACKWARD)]

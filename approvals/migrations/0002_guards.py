"""A decision is made once and stays; a question never changes what it asks about."""

from django.db import migrations

FORWARD = """
CREATE FUNCTION approval_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    RAISE EXCEPTION 'approvals are never deleted' USING ERRCODE = 'restrict_violation';
  END IF;
  IF OLD.status <> 'open' THEN
    RAISE EXCEPTION 'approval % is decided', OLD.public_id USING ERRCODE = 'restrict_violation';
  END IF;
  IF (NEW.public_id, NEW.operation_id, NEW.role, NEW.digest, NEW.asked_at, NEW.expires_at)
     IS DISTINCT FROM
     (OLD.public_id, OLD.operation_id, OLD.role, OLD.digest, OLD.asked_at, OLD.expires_at) THEN
    RAISE EXCEPTION 'approval % asks about one thing only', OLD.public_id
      USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER approval_guard BEFORE UPDATE OR DELETE ON approvals_approval
  FOR EACH ROW EXECUTE FUNCTION approval_guard();

CREATE FUNCTION approval_matches_seal() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.digest IS DISTINCT FROM
     (SELECT digest FROM tools_operation WHERE id = NEW.operation_id) THEN
    RAISE EXCEPTION 'an approval asks about the sealed bytes' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER approval_matches_seal BEFORE INSERT ON approvals_approval
  FOR EACH ROW EXECUTE FUNCTION approval_matches_seal();
"""

BACKWARD = """
DROP TRIGGER approval_matches_seal ON approvals_approval;
DROP FUNCTION approval_matches_seal();
DROP TRIGGER approval_guard ON approvals_approval;
DROP FUNCTION approval_guard();
"""


class Migration(migrations.Migration):
    dependencies = [("approvals", "0001_initial"), ("tools", "0002_guards")]
    operations = [migrations.RunSQL(FORWARD, BACKWARD)]

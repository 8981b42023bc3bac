"""A question begins unanswered."""

from django.db import migrations

FORWARD = """
CREATE FUNCTION approval_begins() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.status <> 'open' THEN
    RAISE EXCEPTION 'approval % has to begin by asking', NEW.public_id
      USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER approval_begins BEFORE INSERT ON approvals_approval
  FOR EACH ROW EXECUTE FUNCTION approval_begins();
"""

BACKWARD = """
DROP TRIGGER approval_begins ON approvals_approval;
DROP FUNCTION approval_begins();
"""


class Migration(migrations.Migration):
    dependencies = [("approvals", "0002_guards")]
    operations = [migrations.RunSQL(FORWARD, BACKWARD)]

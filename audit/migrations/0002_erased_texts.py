"""A personal text may be emptied once the trail itself says that the texts of its ticket were erased."""

from django.db import migrations

FORWARD = """
DROP TRIGGER audit_personal_text_no_update ON audit_personal_text;
CREATE TRIGGER audit_personal_text_no_update BEFORE UPDATE ON audit_personal_text
  FOR EACH ROW WHEN (octet_length(NEW.ciphertext) > 0) EXECUTE FUNCTION audit_refuse_change();

CREATE FUNCTION audit_erase_text() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.event_id, NEW.key_id) IS DISTINCT FROM (OLD.event_id, OLD.key_id) OR NOT EXISTS (
       SELECT 1 FROM audit_event mine JOIN audit_event erasure
         ON erasure.ticket_id = mine.ticket_id AND erasure.shop_id = mine.shop_id
        AND erasure.action = 'texts.erased' AND erasure.id > mine.id
       WHERE mine.id = OLD.event_id) THEN
    RAISE EXCEPTION 'UPDATE on audit_personal_text is refused: no erasure of event % is on the trail',
      OLD.event_id USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER audit_personal_text_erasure BEFORE UPDATE ON audit_personal_text
  FOR EACH ROW WHEN (octet_length(NEW.ciphertext) = 0) EXECUTE FUNCTION audit_erase_text();
"""

BACKWARD = """
DROP TRIGGER audit_personal_text_erasure ON audit_personal_text;
DROP FUNCTION audit_erase_text();
DROP TRIGGER audit_personal_text_no_update ON audit_personal_text;
CREATE TRIGGER audit_personal_text_no_update BEFORE UPDATE ON audit_personal_text
  FOR EACH ROW EXECUTE FUNCTION audit_refuse_change();
"""


class Migration(migrations.Migration):
    dependencies = [("audit", "0001_initial")]
    operations = [migrations.RunSQL(FORWARD, BACKWARD)]

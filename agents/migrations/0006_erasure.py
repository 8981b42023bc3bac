"""How an erasure on record passes the guards: words may become the mark in their place, and no more.

Each guard that refuses a change keeps refusing it. A change whose words are the mark goes to a second
trigger instead, which asks for the licence (a row of accounts_erasedticket) and that nothing else
differs. So no code can erase a word without an erasure on record, nor use one to change a fact.
"""

from django.db import migrations

LICENCE = """
CREATE FUNCTION erasure_licence() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  whose bigint;
  which bigint;
  is_done boolean;
  ticket_of bigint;
BEGIN
  IF TG_OP <> 'INSERT' THEN
    RAISE EXCEPTION 'what is erased stays erased' USING ERRCODE = 'restrict_violation';
  END IF;
  SELECT customer_id, ticket_id, done_at IS NOT NULL INTO whose, which, is_done
    FROM accounts_erasure WHERE id = NEW.erasure_id;
  SELECT customer_id INTO ticket_of FROM agents_ticket WHERE id = NEW.ticket_id;
  IF is_done IS DISTINCT FROM false OR ticket_of IS DISTINCT FROM whose
     OR (which IS NOT NULL AND which <> NEW.ticket_id) THEN
    RAISE EXCEPTION 'ticket % is not what erasure % is about', NEW.ticket_id, NEW.erasure_id
      USING ERRCODE = 'restrict_violation';
  END IF;
  IF EXISTS (SELECT 1 FROM accounts_hold WHERE customer_id = whose AND lifted_at IS NULL
             AND (ticket_id IS NULL OR ticket_id = NEW.ticket_id)) THEN
    RAISE EXCEPTION 'ticket % is on hold', NEW.ticket_id USING ERRCODE = 'restrict_violation';
  END IF;
  IF EXISTS (SELECT 1 FROM agents_task WHERE ticket_id = NEW.ticket_id
             AND status NOT IN ('succeeded', 'failed', 'cancelled', 'handed_off'))
     OR EXISTS (SELECT 1 FROM tools_operation WHERE ticket_id = NEW.ticket_id AND state NOT IN
             ('succeeded', 'failed', 'rejected', 'expired', 'superseded', 'cancelled')) THEN
    RAISE EXCEPTION 'something of ticket % is under way', NEW.ticket_id
      USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER erasure_licence BEFORE INSERT OR UPDATE OR DELETE ON accounts_erasedticket
  FOR EACH ROW EXECUTE FUNCTION erasure_licence();

CREATE FUNCTION erasure_needs_licence(ticket bigint, is_same boolean) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM accounts_erasedticket WHERE ticket_id = ticket) THEN
    RAISE EXCEPTION 'no erasure of ticket % is on record', ticket
      USING ERRCODE = 'restrict_violation';
  END IF;
  IF NOT is_same THEN
    RAISE EXCEPTION 'an erasure takes words away and changes nothing else'
      USING ERRCODE = 'restrict_violation';
  END IF;
END $$;
"""

LICENCE_BACKWARD = """
DROP FUNCTION erasure_needs_licence(bigint, boolean);
DROP TRIGGER erasure_licence ON accounts_erasedticket;
DROP FUNCTION erasure_licence();
"""

# A ticket has no guard of its own; once erased it is closed for good and only its mark remains.
TICKET = """
CREATE FUNCTION ticket_erasure() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.subject = OLD.subject AND NOT EXISTS (
       SELECT 1 FROM accounts_erasedticket WHERE ticket_id = OLD.id) THEN
    RETURN NEW;  -- its customer wrote the mark themselves
  END IF;
  PERFORM erasure_needs_licence(OLD.id, NEW.status = 'closed' AND
    to_jsonb(NEW) - ARRAY['subject', 'status', 'closed_at', 'version', 'assigned_to_id', 'speaker']
    = to_jsonb(OLD) - ARRAY['subject', 'status', 'closed_at', 'version', 'assigned_to_id', 'speaker']
    AND NEW.subject = '[erased]' AND (OLD.subject <> '[erased]' OR OLD.status = 'open'));
  RETURN NEW;
END $$;
CREATE TRIGGER ticket_erasure BEFORE UPDATE ON agents_ticket FOR EACH ROW
  WHEN (NEW.subject = '[erased]' OR OLD.subject = '[erased]')
  EXECUTE FUNCTION ticket_erasure();
"""

TICKET_BACKWARD = """
DROP TRIGGER ticket_erasure ON agents_ticket;
DROP FUNCTION ticket_erasure();
"""

# name of the guard, its table, its function, the other events that it guards, what an erased row
# looks like, the columns that an erasure may change, and the ticket of a row.
OF_OPERATION = "(SELECT ticket_id FROM tools_operation WHERE id = OLD.operation_id)"
GUARDED = (
    (
        "message_guard", "agents_message", "message_guard", "DELETE",
        "NEW.text = '[erased]' AND OLD.text <> '[erased]'",
        ("text", "author_name", "client_message_id"), "OLD.ticket_id",
    ),
    (
        "step_guard", "agents_step", "step_guard", "INSERT OR DELETE",
        ("NEW.arguments = '' AND NEW.result = '{\"erased\": true}'"
         " AND OLD.result IS DISTINCT FROM NEW.result"),
        ("arguments", "result", "call_id"),
        "(SELECT ticket_id FROM agents_task WHERE id = OLD.task_id)",
    ),
    (
        "operation_guard", "tools_operation", "operation_guard", "DELETE",
        ("octet_length(NEW.seal) = 0 AND octet_length(OLD.seal) > 0"
         " AND NEW.intent = '' AND NEW.reason = ''"),
        ("seal", "intent", "reason"), "OLD.ticket_id",
    ),
    (
        "attempt_guard", "tools_attempt", "attempt_guard", "DELETE",
        "OLD.outcome <> '' AND NEW.detail = '' AND OLD.detail <> ''",
        ("detail",), OF_OPERATION,
    ),
    (
        "observation_guard", "tools_observation", "evidence_guard", "DELETE",
        "NEW.body = OLD.body - ARRAY['reason', 'detail'] AND NEW.body <> OLD.body",
        ("body",), OF_OPERATION,
    ),
    (
        "verdict_guard", "tools_verdict", "evidence_guard", "DELETE",
        "NEW.inputs = '{}' AND OLD.inputs <> '{}'",
        ("inputs",), "(SELECT ticket_id FROM agents_task WHERE id = OLD.task_id)",
    ),
    (
        "settlement_guard", "tools_settlement", "settlement_guard", "INSERT OR DELETE",
        "NEW.evidence = '[erased]' AND OLD.evidence <> '[erased]' AND NEW.reason = ''",
        ("evidence", "reason"), OF_OPERATION,
    ),
    (
        "reversal_guard", "tools_reversal", "reversal_guard", "INSERT OR DELETE",
        ("NEW.reason = '' AND NEW.note IN ('', '[erased]')"
         " AND NEW.closed_at IS NOT DISTINCT FROM OLD.closed_at"
         " AND (NEW.reason, NEW.note) IS DISTINCT FROM (OLD.reason, OLD.note)"),
        ("reason", "note"), OF_OPERATION,
    ),
    (
        "approval_guard", "approvals_approval", "approval_guard", "DELETE",
        ("OLD.status <> 'open' AND NEW.reason IN ('', '[erased]') AND NEW.decision_id = ''"
         " AND (NEW.reason, NEW.decision_id) IS DISTINCT FROM (OLD.reason, OLD.decision_id)"),
        ("reason", "decision_id"), OF_OPERATION,
    ),
)  # fmt: skip

# The guard keeps its name for what it is mostly asked about, changes.
SPLIT = """
DROP TRIGGER {guard} ON {table};
CREATE TRIGGER {guard}_rows BEFORE {others} ON {table} FOR EACH ROW EXECUTE FUNCTION {function}();
CREATE TRIGGER {guard} BEFORE UPDATE ON {table} FOR EACH ROW
  WHEN (({erased}) IS NOT TRUE) EXECUTE FUNCTION {function}();
CREATE FUNCTION {guard}_erasure() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM erasure_needs_licence({ticket},
    to_jsonb(NEW) - ARRAY[{columns}] = to_jsonb(OLD) - ARRAY[{columns}]);
  RETURN NEW;
END $$;
CREATE TRIGGER {guard}_erasure BEFORE UPDATE ON {table} FOR EACH ROW
  WHEN ({erased}) EXECUTE FUNCTION {guard}_erasure();
"""
JOIN = """
DROP TRIGGER {guard}_erasure ON {table};
DROP FUNCTION {guard}_erasure();
DROP TRIGGER {guard}_rows ON {table};
DROP TRIGGER {guard} ON {table};
CREATE TRIGGER {guard} BEFORE UPDATE OR {others} ON {table}
  FOR EACH ROW EXECUTE FUNCTION {function}();
"""


def _split(row: tuple[str, str, str, str, str, tuple[str, ...], str]) -> migrations.RunSQL:
    guard, table, function, others, erased, columns, ticket = row
    names = {
        "guard": guard,
        "table": table,
        "function": function,
        "others": others,
        "erased": erased,
        "columns": ", ".join(f"'{column}'" for column in columns),
        "ticket": ticket,
    }
    return migrations.RunSQL(SPLIT.format(**names), JOIN.format(**names))


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0009_keeping"),
        ("agents", "0004_closed_by"),
        ("approvals", "0004_backed_grants"),
        ("tools", "0008_settlement_guards"),
    ]
    operations = [
        migrations.RunSQL(LICENCE, LICENCE_BACKWARD),
        migrations.RunSQL(TICKET, TICKET_BACKWARD),
        *[_split(row) for row in GUARDED],
    ]

"""Every column beside a customer that can hold words: what an erasure does about it.

Whoever adds one says here whether words can be in it, and teaches the erasure to take them away.
"""

import pytest
from django.db import connection

pytestmark = pytest.mark.django_db

# Emptied, marked or removed by agents.services.erasure and what it calls.
ERASED = {
    "accounts_customer": {"name", "email", "locale"},
    "accounts_delegation": {"refresh_token_encrypted", "access_token_encrypted"},
    "accounts_hold": {"reason"},
    "agents_idempotencyrecord": {"scope", "key", "request_digest", "response"},  # the row goes
    "agents_keptreplay": {"then", "now"},  # the row goes
    "agents_message": {"text", "author_name", "client_message_id"},
    "agents_note": {"text"},
    "agents_reviewflag": {"reason", "word"},
    "agents_step": {"arguments", "result", "call_id"},
    "agents_ticket": {"subject"},
    "approvals_approval": {"reason", "decision_id"},
    "tools_attempt": {"detail"},
    "tools_observation": {"body"},  # its words; the evidence of an effect stays
    "tools_operation": {"seal", "intent", "reason"},
    "tools_reversal": {"reason", "note"},
    "tools_settlement": {"evidence", "reason"},
    "tools_verdict": {"inputs"},
}
# Codes, numbers, digests, names of staff, and what the customer stands under: the shop's number.
FACTS = {
    "accounts_customer": {"external_id", "status"},
    "accounts_delegation": {"revoked_reason"},
    "accounts_erasure": {"cause", "asked_by"},
    "accounts_hold": {"placed_by", "lifted_by"},
    "accounts_look": {"subject"},
    "agents_keptreplay": {"prompt_version", "model"},
    "agents_message": {"author"},
    "agents_step": {
        "kind", "status", "tool", "verdict", "error", "prompt_version", "model", "needs",
    },
    "agents_task": {
        "agent", "workflow", "status", "outcome", "reason", "prompt_version", "model",
        "traceparent", "traceparent_resumed",
    },
    "agents_ticket": {"status", "speaker", "closed_by", "locale"},
    "approvals_approval": {"role", "status", "digest", "decided_by"},
    "approvals_reminder": {"level", "recipient", "status"},
    "tools_attempt": {"request_digest", "outcome"},
    "tools_observation": {"source"},
    "tools_inquiry": {"kind", "closed_by"},
    "tools_operation": {
        "kind", "order_id", "state", "idempotency_key", "digest", "currency", "required_roles",
        "granted_roles", "reference", "decided_by_role",
    },
    "tools_reversal": {"closed_by"},
    "tools_settlement": {
        "outcome", "reference", "status", "proposed_by", "confirmed_by", "ended_by",
    },
    "tools_shopevent": {"event_id", "kind"},
    "tools_verdict": {"tool", "gate", "rule", "finding"},
}  # fmt: skip
# Tables of what is a customer's: those that point at one, at a ticket, a task or a change.
BESIDE = """
    SELECT c.table_name, c.column_name FROM information_schema.columns c
    WHERE c.table_schema = 'public'
      AND c.data_type IN ('character varying', 'text', 'jsonb', 'json', 'bytea', 'ARRAY')
      AND c.table_name !~ '^audit_'
      AND (c.table_name IN ('accounts_customer', 'agents_idempotencyrecord')
           OR EXISTS (SELECT 1 FROM information_schema.columns p
                      WHERE p.table_schema = 'public' AND p.table_name = c.table_name
                        AND p.column_name IN ('customer_id', 'ticket_id', 'task_id', 'operation_id',
                                              'approval_id')))
"""


def test_every_column_that_can_hold_words_is_known_to_the_erasure():
    with connection.cursor() as cursor:
        cursor.execute(BESIDE)
        found = {f"{table}.{column}" for table, column in cursor.fetchall()}

    known = {
        f"{table}.{column}"
        for listed in (ERASED, FACTS)
        for table, columns in listed.items()
        for column in columns
    }
    assert found - known == set()
    assert known - found == set()

"""What the database roles of a deployment may do with the trail: add and read, never change.

With these, the application could not rewrite the trail even if the triggers were gone; and as it does
not own the tables, it cannot switch the triggers off.
"""

from psycopg import sql

_APP = (
    "GRANT SELECT, INSERT ON audit_event, audit_personal_text TO {role}",
    "GRANT UPDATE (ciphertext) ON audit_personal_text TO {role}",
    "GRANT USAGE ON SEQUENCE audit_event_id_seq TO {role}",
    "GRANT SELECT, INSERT, UPDATE (wrapped_key, destroyed_at) ON audit_customer_key TO {role}",
    "GRANT SELECT, INSERT ON audit_unsealed TO {role}",
    "GRANT SELECT ON audit_seal TO {role}",
    "GRANT SELECT, INSERT, UPDATE ON audit_export TO {role}",
)
_SEALER = (
    "GRANT SELECT ON audit_event TO {role}",
    "GRANT SELECT, DELETE ON audit_unsealed TO {role}",
    "GRANT SELECT, INSERT ON audit_seal TO {role}",
)


def app_grants(role: str) -> list[str]:
    """Statements for the role that the web server and the workers use."""
    return _for(role, _APP)


def sealer_grants(role: str) -> list[str]:
    """Statements for the role that the sealer uses."""
    return _for(role, _SEALER)


def _for(role: str, statements: tuple[str, ...]) -> list[str]:
    name = sql.Identifier(role).as_string()
    return [statement.format(role=name) for statement in statements]

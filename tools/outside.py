"""The border to the outside: no call crosses it inside a transaction or with a connection held."""

from django.db import connection


class OutsideCallInTransactionError(RuntimeError):
    """Code was about to call the outside with a transaction open. A bug of ours, found early."""


def leave_database() -> None:
    """Give this thread's connection back to the pool before an outside call.

    Raises OutsideCallInTransactionError inside a transaction (a test's own wrapping one aside).
    """
    blocks = connection.atomic_blocks
    if any(not getattr(block, "_from_testcase", False) for block in blocks):
        raise OutsideCallInTransactionError
    if not blocks:
        connection.close()

"""The members of staff of a run, and what can happen to their right to approve.

Two approve all along. One of these has a second account, of the same address; and there are some
whose right ends once they have said yes for the first time.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import httpx
import psycopg

from script.lib.prove.doors import Door, Staff

# Over the first limit of the demo's shop, 10,000, one of staff must say yes; over this one two.
SECOND_LIMIT = 25_000
FIRST, OTHER, DOUBLE = "staff", "staff2", "staff.double"
LEAVERS = tuple(f"staff.leaver{number}" for number in (1, 2, 3))
_ADDRESS = {
    FIRST: "staff@example.com",
    OTHER: "staff2@example.com",
    DOUBLE: " Staff@Example.com",
    **{name: f"{name}@example.com" for name in LEAVERS},
}
_COPY = """
    INSERT INTO accounts_user
    SELECT (jsonb_populate_record(u, jsonb_build_object(
        'id', nextval(pg_get_serial_sequence('accounts_user', 'id')), 'username', %s::text))).*
    FROM accounts_user u WHERE username = %s
"""
END_RIGHT = """
    UPDATE accounts_user SET is_approver = false WHERE username = %s RETURNING clock_timestamp()
"""


def hire(connection: "psycopg.Connection[Any]") -> None:
    """Give the demo's shop its second limit and its staff, who all have the demo's password."""
    connection.execute("UPDATE accounts_shop SET second_limit = %s", [SECOND_LIMIT])
    for name in (DOUBLE, *LEAVERS):
        connection.execute(_COPY, [name, FIRST])
    for name, address in _ADDRESS.items():
        connection.execute(
            "UPDATE accounts_user SET email = %s WHERE username = %s", [address, name]
        )


@dataclass
class Team:
    """Everybody, signed in. `ended` tells whose right to approve has ended, and when."""

    approvers: list[Staff]
    double: Staff
    leavers: list[Staff]
    ended: dict[str, datetime] = field(default_factory=dict)
    _turn: int = 0

    def next_first(self, *, leaves: bool, has_double: bool) -> Staff:
        """Who answers first: whoever's turn it is, or one who is about to leave, while there are."""
        if leaves and self.leavers:
            return self.leavers.pop()
        if has_double:
            return self.approvers[0]
        self._turn += 1
        return self.approvers[self._turn % len(self.approvers)]

    def is_leaving(self, first: Staff) -> bool:
        """Is it time to take this one's right to approve?"""
        return first.name in LEAVERS and first.name not in self.ended

    def other_than(self, first: Staff | None) -> Staff:
        """Who answers second: somebody else."""
        return next(person for person in self.approvers if person is not first)


@asynccontextmanager
async def signed_in(web: str, options: dict[str, Any]) -> AsyncIterator[Team]:
    """All of them in sessions of their own. Raises NoAnswerError when one is not let in."""
    people = {}
    async with AsyncExitStack() as stack:
        for name in _ADDRESS:
            client = httpx.AsyncClient(base_url=web, **options)
            people[name] = Staff(Door(await stack.enter_async_context(client)), name)
            await people[name].sign_in()
        yield Team(
            approvers=[people[FIRST], people[OTHER]],
            double=people[DOUBLE],
            leavers=[people[name] for name in LEAVERS],
        )

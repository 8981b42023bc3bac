"""Hundreds of quiet sockets, and all of them coming back at once."""

import asyncio
import gc
import os
from pathlib import Path

import psycopg_pool
import pytest
import redis
from django.conf import settings as own_settings
from django.db import connection
from django.utils import timezone

from accounts.models import Customer
from agents import events, store
from agents.chat.allowance import MAX_SOCKETS
from agents.consumers import sockets
from agents.models import Author, Ticket
from tests.accounts.factories import Signer
from tests.chat.client import Chat, in_thread
from tests.factories import make_shop

pytestmark = pytest.mark.timeout(240)

CUSTOMERS = 40
EACH = MAX_SOCKETS
PATIENCE = 60.0  # a slow machine is no fault


@pytest.fixture
def tokens(transactional_db, monkeypatch) -> list[str]:
    """Customers who are signed in; nobody looks for news unless the bell rings."""
    monkeypatch.setattr(sockets, "LOOK_SECONDS", 3600.0)
    monkeypatch.setattr("tests.chat.client.SECONDS", PATIENCE)
    signer = Signer(make_shop(locale="en"))
    signed = [signer.sign(sub=f"customer-{n}", jti=f"{n}") for n in range(CUSTOMERS)]
    connection.close()  # what this thread has used goes back
    return signed


async def come_in(token: str, **fields: object) -> Chat:
    chat = Chat()
    assert (await chat.connect())[0]
    await chat.send(type="hello", token=token, **fields)
    await chat.until(lambda frame: frame["type"] == "snapshot", PATIENCE)
    return chat


async def all_of(tokens: list[str], **fields: object) -> list[Chat]:
    """Everybody at once, with as many sockets as each may have."""
    return await asyncio.gather(
        *(come_in(token, **fields) for token in tokens for _ in range(EACH))
    )


async def gone(chats: list[Chat]) -> None:
    await asyncio.gather(*(chat.leave() for chat in chats))


def pool() -> psycopg_pool.ConnectionPool:
    found = getattr(connection, "pool")  # noqa: B009 - only PostgreSQL's wrapper has one
    assert isinstance(found, psycopg_pool.ConnectionPool)
    return found


def held() -> int:
    """Database connections that somebody holds just now, all those of this process."""
    stats = pool().get_stats()
    return stats["pool_size"] - stats["pool_available"]


def redis_clients() -> int:
    with redis.Redis.from_url(own_settings.REDIS_URL) as client:
        return int(client.info("clients")["connected_clients"])


def resident() -> int:
    """Kilobytes of memory that this process has."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024


async def settled() -> None:
    """Until no short work is under way."""
    async with asyncio.timeout(PATIENCE):
        while held() or sockets._SHORT._work_queue.qsize():
            await asyncio.sleep(0.1)


@pytest.mark.asyncio
async def test_quiet_sockets_hold_no_connection_and_little_memory(tokens: list[str]):
    await gone([await come_in(tokens[0])])
    gc.collect()
    before, clients = resident(), redis_clients()
    opened = pool().get_stats()["pool_size"]  # by other tests of this process as well

    chats = await all_of(tokens)
    try:
        await settled()

        assert len(chats) == CUSTOMERS * EACH
        assert held() == 0
        assert pool().get_stats()["pool_size"] <= max(opened, sockets._SHORT._max_workers + 2)
        # Bells of one process share a connection; others come and go.
        assert redis_clients() - clients < 40
        assert (resident() - before) / len(chats) < 400  # KB for both ends of each
    finally:
        await gone(chats)


@pytest.mark.asyncio
async def test_when_all_come_back_at_once_each_is_told_what_it_missed_and_nothing_twice(
    tokens: list[str],
):
    chats = await all_of(tokens)
    known = chats[0].view.after()
    await gone(chats)
    ticket_id = await in_thread(write_to)("customer-7")
    running = len(asyncio.all_tasks())

    back = await all_of(tokens, after=known)
    try:
        heard = [chat for chat in back if chat.view.texts()]
        assert [chat.view.texts() for chat in heard] == [["We have looked into it."]] * EACH
        assert {chat.view.ticket["id"] for chat in heard if chat.view.ticket} == {ticket_id}
        assert all(len(chat.frames) == 1 for chat in back)
        # Those that were there before have given their places back: nobody is one too many.
        assert len(back) == CUSTOMERS * EACH
        await settled()
        await in_thread(write_to)("customer-7")
        for chat in heard:
            told = await chat.until(lambda frame: frame["type"] == "message", PATIENCE)
            assert told["message"]["seq"] == 2
    finally:
        await gone(back)
    assert len(asyncio.all_tasks()) <= running + 2


def write_to(external_id: str) -> int:
    """A line of staff in the customer's ticket, with the bell rung."""
    customer = Customer.objects.get(external_id=external_id)
    now = timezone.now()
    ticket, _ = Ticket.objects.get_or_create(
        shop=customer.shop,
        customer=customer,
        defaults={"subject": "A parcel", "opened_at": now, "updated_at": now},
    )
    store.add_message(ticket, author=Author.STAFF, text="We have looked into it.", now=now)
    events.ring(0, ticket.pk)
    return ticket.pk

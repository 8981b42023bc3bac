"""Parts of the chat's own code by themselves, in a browser but with nobody at the other end."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.browser.visitor import visit
from tests.live import Product

__all__ = ["visit"]

Run = Callable[..., Any]


@pytest.fixture
def run(visit, product: Product) -> Run:
    """Runs a function of the page's, which may import from the chat's folder."""
    page = visit().page
    page.goto(f"{product.url}/widget/?key=demo")
    return page.evaluate  # type: ignore[no-any-return]


TRANSPORT = """
    const { Transport } = await import("/static/widget/transport.js");
    const nothing = () => {};
    const make = (options = {}) => new Transport({
      key: "demo", token: async () => "t", where: () => ({ ticket: null }), whose: () => null,
      onFrame: nothing, onState: nothing, onLost: nothing, onOtherCustomer: nothing, ...options,
    });
"""


@pytest.mark.parametrize("told", ["2001-01-01T00:00:00+00:00", "2099-01-01T00:00:00+00:00"])
def test_a_token_is_renewed_by_how_long_it_has_left_whatever_the_clock_says(run: Run, told: str):
    """A clock that is behind by a month or more would have it renewed without a pause."""
    waits = run(
        "async (told) => {"
        + TRANSPORT
        + """
            const waits = [];
            const before = window.setTimeout;
            window.setTimeout = (_, pause) => { waits.push(pause); return 1; };
            make().hear({ type: "done", for: "token", expires_at: told, expires_in: 600 });
            window.setTimeout = before;
            return waits;
        }""",
        told,
    )

    assert waits == [540_000]


STORE = """
    const { Store } = await import("/static/widget/store.js");
    const { Outbox } = await import("/static/widget/outbox.js");
    const message = (seq) => ({ seq, ticket: 5, author: "agent", text: "", at: "", client_message_id: "" });
    const snapshot = (seqs, has_earlier) => ({
      type: "snapshot", customer: { id: "ada" }, is_demo_model: true, ticket: { id: 5, status: "open" },
      has_earlier, messages: seqs.map(message), tasks: [], steps: [], actions: [], receipts: [],
    });
"""


def test_more_news_than_a_snapshot_holds_leaves_no_gap(run: Run):
    known = run(
        "async () => {"
        + STORE
        + """
            const store = new Store();
            store.apply(snapshot([1, 2, 3], false));
            store.apply(snapshot([4, 5], false));
            const before = [...store.message.keys()];
            store.apply(snapshot([9, 10], true));
            return { before, after: [...store.message.keys()], asks: store.firstSeq, more: store.hasEarlier };
        }"""
    )

    assert known == {"before": [1, 2, 3, 4, 5], "after": [9, 10], "asks": 9, "more": True}


def test_what_is_written_at_once_into_a_new_conversation_is_one_conversation(run: Run):
    """Also when the second is written before the first is taken, or while there was no line."""
    said = run(
        "async () => {"
        + STORE
        + """
            const store = new Store();
            store.clear("new");
            const said = [];
            const outbox = new Outbox({ store, send: (frame) => said.push([frame.text, frame.ticket]) > 0 });
            outbox.add("one", store.goesTo);
            outbox.add("two", store.goesTo);
            const first = store.outbox[0].id;
            outbox.taken({ ref: first, ticket: 5, seq: 1 });
            return said;
        }"""
    )

    assert said == [["one", "new"], ["two", 5]]


def test_a_refusal_of_the_first_leaves_the_beginning_to_the_next(run: Run):
    said = run(
        "async () => {"
        + STORE
        + """
            const store = new Store();
            store.clear("new");
            const said = [];
            const outbox = new Outbox({ store, send: (frame) => said.push([frame.text, frame.ticket]) > 0 });
            outbox.add("one", store.goesTo);
            outbox.add("two", store.goesTo);
            outbox.refused({ ref: store.outbox[0].id, code: "shop-unavailable", message: "Later" });
            return said;
        }"""
    )

    assert said == [["one", "new"], ["two", "new"]]


def test_half_a_character_never_reaches_the_line(run: Run):
    said = run(
        "async () => {"
        + STORE
        + """
            const said = [];
            const outbox = new Outbox({ store: new Store(), send: (frame) => said.push(frame.text) > 0 });
            outbox.add("a\\ud83d", null);
            outbox.add("b\\0c", null);
            return said;
        }"""
    )

    assert said == ["a\N{REPLACEMENT CHARACTER}", "bc"]


def test_a_message_taken_in_a_conversation_that_is_not_shown_is_not_under_way_here(run: Run):
    left = run(
        "async () => {"
        + STORE
        + """
            const store = new Store();
            store.apply(snapshot([1], false));
            const outbox = new Outbox({ store, send: () => true });
            outbox.add("there", 4);
            outbox.taken({ ref: store.outbox[0].id, ticket: 4, seq: 7 });
            return store.outbox.length;
        }"""
    )

    assert left == 0


def test_a_reply_that_was_broken_off_does_not_stand_while_the_model_is_waited_for(run: Run):
    shown = run(
        "async () => {"
        + STORE
        + """
            const store = new Store();
            const task = (waits_for) => ({ type: "task", task: { id: 1, is_live: true, waits_for } });
            store.apply(task(""));
            store.apply({ type: "delta", task: 1, step: 2, text: "I have" });
            const before = store.draft && store.draft.text;
            store.apply(task("model"));
            return [before, store.draft];
        }"""
    )

    assert shown == ["I have", None]


POLLING = """
    const answers = [];
    window.fetch = (_, { body }) =>
      new Promise((resolve) => answers.push({ frame: JSON.parse(body).frame, resolve }));
    const answer = (frames) => new Response(JSON.stringify({ frames }));
    const rest = () => new Promise((resolve) => setTimeout(resolve, 20));
    const heard = [], states = [];
    const transport = make({ onFrame: (frame) => heard.push(frame.type), onState: (now) => states.push(now) });
    Object.assign(transport, { isPolling: true, isReady: true, wanted: true, current: "t" });
"""


def test_without_a_socket_too_no_older_picture_is_laid_over_a_newer_one(run: Run):
    """The look that was under way when the customer said yes has an end before the yes is sent."""
    told = run(
        "async () => {"
        + TRANSPORT
        + POLLING
        + """
            transport.exchange(null);
            await rest();
            transport.send({ type: "decide" });
            transport.send({ type: "orders" });
            await rest();
            const first = answers.map(({ frame }) => frame && frame.type);
            answers[1].resolve(answer([{ type: "task" }, { type: "orders" }]));
            answers[0].resolve(answer([{ type: "task" }]));
            await rest();
            const then = answers.map(({ frame }) => frame && frame.type);
            answers[2].resolve(answer([{ type: "done", for: "decide" }, { type: "action" }]));
            await rest();
            transport.stop();
            return { first, then, heard };
        }"""
    )

    assert told["first"] == [None, "orders"]
    assert told["then"] == [None, "orders", "decide"]
    assert sorted(told["heard"][:2]) == ["orders", "task"]
    assert told["heard"][2:] == ["done", "action"]


def test_a_frame_that_the_service_refuses_is_refused_here_and_not_sent_for_ever(run: Run):
    told = run(
        "async () => {"
        + TRANSPORT
        + POLLING
        + """
            transport.send({ type: "say" });
            await rest();
            answers[0].resolve(new Response(JSON.stringify({ type: "error", for: "say" }), { status: 400 }));
            await rest();
            transport.stop();
            return { heard, states };
        }"""
    )

    assert told == {"heard": ["error"], "states": []}


@pytest.mark.parametrize(
    "answered",
    ["new Response('x', { status: 403 })", "new Response('<html>', { status: 200 })"],
    ids=["refused on the way", "no frames"],
)
def test_an_answer_that_is_not_the_services_own_is_a_line_that_went(run: Run, answered: str):
    states = run(
        "async () => {"
        + TRANSPORT
        + POLLING
        + f"""
            transport.send({{ type: "say" }});
            await rest();
            answers[0].resolve({answered});
            await rest();
            transport.stop();
            return states;
        }}"""
    )

    assert states == ["reconnecting"]


def test_whoever_asks_over_http_takes_a_socket_again_once_one_gets_through(run: Run):
    """Both ways: some let a socket open and nothing through it."""
    told = run(
        "async () => {"
        + TRANSPORT
        + POLLING
        + """
            const sockets = [], sent = [];
            window.WebSocket = class extends EventTarget {
              constructor() { super(); sockets.push(this); }
              send(text) { sent.push(text); }
              close() {}
            };
            transport.exchange = async () => {};
            transport.polls = 198;
            await transport.poll();
            const early = sockets.length;
            await transport.poll();
            const probe = sockets.length;
            sockets[0].dispatchEvent(new Event("open"));
            await rest();
            const open = transport.isPolling;
            sockets[0].dispatchEvent(new Event("message"));
            await rest();
            transport.stop();
            return { early, probe, open, sent, after: transport.isPolling, sockets: sockets.length };
        }"""
    )

    assert told == {
        "early": 0,
        "probe": 1,
        "open": True,
        "sent": ["{}"],
        "after": False,
        "sockets": 2,
    }

"""Traces and metrics: what a collector is told, what it is never told, and that nobody waits for it."""

import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from celery.signals import worker_shutdown
from django.conf import settings as django_settings
from django.test import Client

from agents import telemetry
from agents.models import Task
from script.lib.bootstrap import ROOT
from tests.agents.collector import Collector, Told, collecting, silent
from tests.agents.desk import Desk, reply, steps

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
TRACEPARENT = f"00-{TRACE}-{SPAN}-01"
STREET = "42 Newstreet Canary"
ADDRESS = f"Please send order 1044 to Ada Lovelace, {STREET}, Springfield, IL 62704, US"
SEEN: set[threading.Thread] = set()
NEVER = "9999999"  # milliseconds: what is told goes out when it stops


@pytest.fixture
def tell_to(settings, monkeypatch) -> Iterator[Callable[[str], None]]:
    """Switch telling on, to the collector at an address, for the length of a test."""

    def switch(url: str) -> None:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", NEVER)
        monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", NEVER)
        settings.TELEMETRY = settings.TELEMETRY_TRACES = settings.TELEMETRY_METRICS = True

    SEEN.clear()
    SEEN.update(threading.enumerate())
    yield switch
    telemetry.stop()


@pytest.fixture
def collector(tell_to) -> Iterator[Collector]:
    with collecting() as running:
        tell_to(running.url)
        yield running
        telemetry.stop()


def senders() -> list[str]:
    """The threads of this test that send: one of another test's may still wait for its collector."""
    new = [thread.name for thread in threading.enumerate() if thread not in SEEN]
    return sorted(name for name in new if name.startswith("Otel"))


def test_each_stretch_of_a_refund_holds_the_call_that_it_made(desk: Desk, collector: Collector):
    task = desk.done("My mug from order 1042 arrived broken, please refund it")
    telemetry.stop()

    ids = {span.id: span for span in collector.spans}
    calls = collector.named("chat ") + collector.named("execute_tool ")
    stretches = collector.named("invoke_agent ")
    assert collector.services == {"countersign"}
    assert {span.name for span in stretches} == {"invoke_agent support"}
    assert {span.name for span in collector.named("chat ")} == {f"chat {django_settings.MODEL}"}
    assert {span.name for span in collector.named("execute_tool ")} == {
        "execute_tool find_orders",
        "execute_tool refund_order",
    }
    assert {span.kind for span in stretches + collector.named("execute_tool ")} == {"INTERNAL"}
    assert {span.kind for span in collector.named("chat ")} == {"CLIENT"}
    assert [ids[span.parent].attributes["countersign.step.n"] for span in calls] == [
        span.attributes["countersign.step.n"] for span in calls
    ]
    assert {ids[span.parent].name for span in calls} == {"invoke_agent support"}
    assert len(stretches) == len(calls) == len(steps(task)) + 1  # the send is a stretch of its own
    assert not [span for span in collector.spans if span.is_error]


def test_attributes_are_those_of_the_conventions(desk: Desk, collector: Collector):
    task = desk.done("Please refund order 1042")
    telemetry.stop()

    first = steps(task)[0]
    stretch, chat = collector.named("invoke_agent ")[0], collector.named("chat ")[0]
    sent = [
        span.attributes
        for span in collector.named("execute_tool refund_order")
        if span.attributes["countersign.outcome"] == "succeeded"
    ]
    host, port = desk.model.url.removeprefix("http://").removesuffix("/v1").split(":")
    shared = {"gen_ai.conversation.id": str(task.ticket_id), "countersign.step.n": 1}
    model = {"gen_ai.provider.name": "openai", "gen_ai.request.model": task.model}
    assert stretch.attributes == {
        **shared,
        **model,
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "support",
        "gen_ai.agent.version": task.prompt_version,
        "countersign.task.id": task.pk,
        "countersign.step.attempt": 1,
    }
    assert first.result is not None
    assert chat.attributes == {
        **shared,
        **model,
        "gen_ai.operation.name": "chat",
        "gen_ai.request.temperature": 0,
        "gen_ai.request.max_tokens": django_settings.MODEL_MAX_OUTPUT,
        "gen_ai.response.model": task.model,
        "gen_ai.response.id": first.result["response_id"],
        "gen_ai.response.finish_reasons": [first.result["finish_reason"]],
        "gen_ai.usage.input_tokens": first.tokens_in,
        "gen_ai.usage.output_tokens": first.tokens_out,
        "gen_ai.usage.cache_read.input_tokens": first.tokens_cached,
        "server.address": host,
        "server.port": int(port),
        "countersign.step.attempt": 1,
    }
    (send,) = sent
    (step,) = (step for step in steps(task) if step.tool == "refund_order")
    assert send == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "refund_order",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": step.call_id,
        "gen_ai.conversation.id": str(task.ticket_id),
        "countersign.outcome": "succeeded",
        "countersign.step.n": step.n,
        "countersign.step.attempt": 1,
    }


def post(desk: Desk, text: str, traceparent: str) -> Task:
    desk.sign_in("ada")
    answer = Client().post(
        "/v1/tasks",
        data=json.dumps({"message": text, "ticket": "new"}),
        content_type="application/json",
        headers={
            "Authorization": f"Bearer {desk.shop.sign('ada')}",
            "Idempotency-Key": '"1"',
            "traceparent": traceparent,
        },
    )
    assert answer.status_code == 201
    return Task.objects.get(pk=answer.json()["id"])


def test_a_task_is_told_of_in_the_trace_of_the_request_that_made_it(
    desk: Desk, collector: Collector
):
    task = desk.work(post(desk, "Please refund order 1042", TRACEPARENT))
    telemetry.stop()

    assert task.status == "waiting_approval"
    assert task.traceparent == TRACEPARENT
    stretches = collector.named("invoke_agent ")
    assert len(stretches) > 1
    assert {(span.trace, span.parent) for span in stretches} == {(TRACE, SPAN)}


def test_after_a_wait_it_goes_on_in_a_trace_of_its_own_that_links_to_the_first(
    desk: Desk, collector: Collector
):
    task = desk.work(post(desk, "Please refund order 1042", TRACEPARENT))
    telemetry.stop()
    before = len(collector.named("invoke_agent "))

    task = desk.say_yes(task)
    telemetry.stop()

    resumed, *later = collector.named("invoke_agent ")[before:]
    assert task.status == "succeeded"
    assert task.traceparent == TRACEPARENT
    assert (resumed.parent, resumed.links) == ("", [(TRACE, SPAN)])
    assert resumed.trace != TRACE
    assert later
    assert {(span.trace, span.parent) for span in later} == {(resumed.trace, resumed.id)}
    assert not any(span.links for span in later)


def test_without_a_traceparent_the_first_stretch_begins_the_trace(desk: Desk, collector: Collector):
    task = desk.work(desk.ask("Please refund order 1042"))
    telemetry.stop()

    first, *later = collector.named("invoke_agent ")
    assert first.parent == ""
    assert task.traceparent.rpartition("-")[0] == f"00-{first.trace}-{first.id}"
    assert later
    assert {(span.trace, span.parent) for span in later} == {(first.trace, first.id)}


@pytest.mark.parametrize(
    "header",
    [
        "",
        "nothing of the kind",
        TRACEPARENT.upper(),
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"{TRACEPARENT}-more",
        f"{TRACEPARENT}\n",
        f"00-{TRACE[:-1]}\u0661-{SPAN}-01",
    ],
)
def test_a_traceparent_that_is_none_is_not_taken(header: str):
    assert telemetry.read_traceparent(header) == ""


def test_tokens_and_seconds_are_counted_in_the_boundaries_that_are_advised(
    desk: Desk, collector: Collector
):
    task = desk.done("Please refund order 1042")
    telemetry.stop()

    asked = [step for step in steps(task) if step.kind == "model"]
    tokens_in = collector.point("gen_ai.client.token.usage", gen_ai__token__type="input")
    tokens_out = collector.point("gen_ai.client.token.usage", gen_ai__token__type="output")
    took = collector.point("gen_ai.client.operation.duration")
    assert tokens_in.sum == sum(step.tokens_in for step in asked)
    assert tokens_out.sum == sum(step.tokens_out for step in asked)
    assert tokens_in.count == tokens_out.count == took.count == len(asked)
    assert list(tokens_in.explicit_bounds)[:4] == [1, 4, 16, 64]
    assert list(tokens_in.explicit_bounds)[-1] == 67108864
    assert list(took.explicit_bounds)[:3] == [0.01, 0.02, 0.04]
    assert list(took.explicit_bounds)[-1] == 81.92


def test_a_call_that_fails_says_how(desk: Desk, collector: Collector):
    desk.model.fault("error", times=1, status=500)
    desk.shop.fault("error_before", scope={"path": "/orders"}, times=1, status=503)
    task = desk.advance(desk.ask("Please refund order 1042"))
    task = desk.wake(task)
    desk.wake(task)
    telemetry.stop()

    failed = {span.name: span for span in collector.spans if span.is_error}
    chat = failed.pop(f"chat {task.model}")
    tool = failed.pop("execute_tool find_orders")
    assert not failed
    assert chat.attributes["error.type"] == "server_error"
    assert tool.attributes["error.type"] == "UnavailableError"
    assert tool.attributes["countersign.outcome"] == "shop_away"
    point = collector.point("gen_ai.client.operation.duration", error__type="server_error")
    assert point.count == 1


def test_a_fault_of_ours_is_told_by_its_class_alone(desk: Desk, collector: Collector, monkeypatch):
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError(f"while reading {STREET}")

    monkeypatch.setattr("agents.record._record", fail)
    desk.advance(desk.ask("Please refund order 1042"))
    telemetry.stop()

    (stretch,) = collector.named("invoke_agent ")
    assert stretch.attributes["error.type"] == "RuntimeError"
    assert STREET.encode() not in b"".join(collector.bodies)


def made_up(desk: Desk) -> str:
    """A model that makes up a tool's name out of what it was told."""
    call = {"name": "zinnobar_street", "arguments": json.dumps({"to": STREET})}
    return desk.model.script("made_up", [{"tool_calls": [call]}, {"content": "Sorry."}])


def test_no_word_of_anybody_is_told(desk: Desk, collector: Collector, settings):
    desk.done(ADDRESS)
    desk.done("Where is my order 1045?")
    settings.MODEL = made_up(desk)
    desk.done(f"Zinnobar {STREET}")
    telemetry.stop()

    told = b"".join(collector.bodies).lower()
    assert {"execute_tool change_address", "execute_tool unknown_tool"} <= {
        span.name for span in collector.spans
    }
    for word in (STREET, "Springfield", "zinnobar", "Lovelace", "ada@", "send order", "Sorry."):
        assert word.lower().encode() not in told, word


def contents(told: list[Told], name: str) -> str:
    return "\n".join(str(span.attributes.get(name, "")) for span in told)


def test_words_are_told_when_asked_for_without_what_names_the_customer(
    desk: Desk, collector: Collector, settings
):
    settings.TELEMETRY_CONTENT = True
    task = desk.ask(ADDRESS)
    customer = task.customer
    customer.name, customer.email = "Zinnobar Lovelace", "zinnobar@mail.example"
    customer.save(update_fields=["name", "email"])
    desk.work(task)
    telemetry.stop()

    chats, tools = collector.named("chat "), collector.named("execute_tool ")
    asked = contents(chats, "gen_ai.input.messages")
    proposed = contents(chats, "gen_ai.output.messages")
    arguments = contents(tools, "gen_ai.tool.call.arguments")
    assert "Please send order 1044 to [left out] [left out], 42 Newstreet Canary" in asked
    first = json.loads(chats[0].attributes["gen_ai.input.messages"])
    assert [message["role"] for message in first] == ["system", "system", "user"]
    assert '"type": "tool_call", ' in proposed
    assert '"address": "[left out]"' in arguments
    assert STREET not in arguments
    assert '"status"' in contents(tools, "gen_ai.tool.call.result")
    told = b"".join(collector.bodies)
    for word in (b"Zinnobar", b"Lovelace", b"zinnobar@mail.example"):
        assert word not in told, word


def test_a_card_number_of_the_shops_records_is_hidden_in_what_is_told(
    desk: Desk, collector: Collector, settings
):
    settings.TELEMETRY_CONTENT = True
    said = "The shop says that 4111 1111 1111 1111 was charged."
    settings.MODEL = desk.model.script("card", [{"content": said}])
    desk.done("Hello there")
    telemetry.stop()

    (chat,) = collector.named("chat ")
    assert "•••• 1111 was charged" in chat.attributes["gen_ai.output.messages"]
    assert b"4111" not in b"".join(collector.bodies)


@pytest.mark.parametrize(
    "arguments",
    ["[" * 3_000, '{"a": ' * 500 + "1" + "}" * 500, '{"order_id": "\\ud800"}', "{"],
)
def test_odd_arguments_are_told_too_and_break_nothing(
    desk: Desk, collector: Collector, settings, arguments: str
):
    settings.TELEMETRY_CONTENT = True
    call = {"name": "find_orders", "arguments": arguments}
    settings.MODEL = desk.model.script("odd", [{"tool_calls": [call]}, {"content": "Sorry."}])
    task = desk.done("Hello there")
    telemetry.stop()

    assert (task.status, task.outcome) == ("succeeded", "answered")
    (tool,) = collector.named("execute_tool find_orders")
    assert tool.attributes["gen_ai.tool.call.arguments"]
    assert len(collector.named("chat ")) == 2


def test_words_that_cannot_be_told_cost_no_step(
    desk: Desk, collector: Collector, settings, monkeypatch, caplog
):
    def fail(*_: Any) -> None:
        raise LookupError(STREET)

    settings.TELEMETRY_CONTENT = True
    monkeypatch.setattr("agents.captured._Hider", fail)

    task = desk.done("Please refund order 1042")
    telemetry.stop()

    assert (task.status, task.outcome) == ("succeeded", "done")
    assert not any(step.lost for step in steps(task))
    assert "the words of a span were left out: LookupError" in caplog.text
    assert STREET not in caplog.text


def story(desk: Desk) -> tuple[str, str, str, list[str]]:
    task = desk.done("Please refund order 1042")
    kinds = [step.tool or step.kind for step in steps(task)]
    return task.status, task.outcome, reply(task).partition("eference")[0], kinds


REFUNDED = ("succeeded", "done", ["model", "find_orders", "model", "refund_order", "model"])


@pytest.mark.parametrize("kind", ["down", "silent"])
def test_a_collector_that_does_not_answer_changes_nothing_and_holds_up_nobody(
    desk: Desk, tell_to, kind: str, monkeypatch, caplog
):
    monkeypatch.setattr("agents.spans.STOP_SECONDS", 0.05)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    with silent() as url:
        tell_to("http://127.0.0.1:9" if kind == "down" else url)
        status, outcome, _, made = story(desk)

        threads = senders()
        telemetry.stop()

    assert (status, outcome, made) == REFUNDED
    assert threads
    assert len(desk.shop.effects()) == 1
    assert "Traceback" not in caplog.text


def test_what_does_not_fit_the_queue_is_dropped_and_the_work_goes_on(
    desk: Desk, tell_to, monkeypatch
):
    monkeypatch.setattr("agents.spans.STOP_SECONDS", 0.05)
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "2")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "2")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    with silent() as url:
        tell_to(url)

        status, outcome, _, made = story(desk)

        telemetry.stop()
    assert (status, outcome, made) == REFUNDED


def test_a_variable_that_telling_cannot_begin_with_costs_no_task(
    desk: Desk, tell_to, monkeypatch, caplog
):
    tell_to("http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "1")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "2")

    with caplog.at_level(logging.ERROR, logger="agents.telemetry"):
        status, outcome, _, made = story(desk)

    assert (status, outcome, made) == REFUNDED
    assert [record.message for record in caplog.records if record.name == "agents.telemetry"] == [
        "telemetry could not be started; the work goes on without it"
    ]


def test_a_worker_begins_to_send_with_its_first_step_and_ends_it_when_it_stops(
    desk: Desk, collector: Collector
):
    telemetry.prepare()
    before = senders()
    desk.advance(desk.ask("Please refund order 1042"))
    during = senders()
    worker_shutdown.send(sender=None)

    assert (before, senders()) == ([], [])
    assert during == ["OtelBatchSpanRecordProcessor", "OtelPeriodicExportingMetricReader"]
    assert [span.name for span in collector.spans] == [
        f"chat {django_settings.MODEL}",
        "invoke_agent support",
    ]


def test_traces_alone_are_told_where_nothing_else_is_asked_for(
    desk: Desk, collector: Collector, settings
):
    settings.TELEMETRY_METRICS = False

    desk.advance(desk.ask("Please refund order 1042"))
    during = senders()
    telemetry.stop()

    assert during == ["OtelBatchSpanRecordProcessor"]
    assert collector.spans
    assert not collector.points


def test_with_nothing_set_nothing_is_told_or_kept(desk: Desk):
    before = senders()

    task = desk.done("Please refund order 1042")

    assert (task.traceparent, task.traceparent_resumed) == ("", "")
    assert senders() == before


def python(code: str, monkeypatch, **variables: str) -> str:
    """What another process prints, or its last words; it knows of no collector but what it is told."""
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)
    for name, value in {"DJANGO_SETTINGS_MODULE": "config.settings", **variables}.items():
        monkeypatch.setenv(name, value)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return (done.stdout or done.stderr).strip().splitlines()[-1]


def test_with_nothing_set_nothing_is_even_loaded(monkeypatch):
    code = """
import sys, django
django.setup()
from agents import runner, telemetry
telemetry.prepare()
print("runner" in dir(), [name for name in sys.modules if "opentelemetry" in name])
"""

    assert python(code, monkeypatch) == "True []"


TOLD = "import config.settings as s; print(s.TELEMETRY_TRACES, s.TELEMETRY_METRICS, s.TELEMETRY_CONTENT)"


def test_what_is_set_says_what_is_told(monkeypatch):
    traces = "http://collector.internal:4318/v1/traces"

    found = python(
        TOLD,
        monkeypatch,
        OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=traces,
        OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT="true",
    )

    assert found == "True False True"


def test_a_protocol_that_is_not_spoken_stops_the_start(monkeypatch):
    said = python(
        TOLD,
        monkeypatch,
        OTEL_EXPORTER_OTLP_ENDPOINT="http://collector.internal:4317",
        OTEL_EXPORTER_OTLP_PROTOCOL="grpc",
    )

    assert said.strip() == "- OTEL_EXPORTER_OTLP_PROTOCOL: only http/protobuf is spoken here"

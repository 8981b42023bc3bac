"""Spans and metrics with OpenTelemetry's names for generative AI. The only importer of OpenTelemetry.

Which collector, how often and which share of the traces is for the standard variables to say (OTEL_…);
the SDK reads them itself. The collector is the operator's own, like the database: the rules for shops'
addresses (accounts.outbound) are not for it. Ended spans wait in a bounded queue for a thread that
sends them; what does not fit is dropped. So no step, transaction or request ever waits for a collector.

No span holds what people said or what the model made up: a tool's name is one of ours, an error is a
code or a class. Words are told only when the operator asks for them (agents.captured).
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from urllib.parse import urlsplit

from django.conf import settings
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import Meter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricExporter, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import Link, NonRecordingSpan, Span, SpanContext, SpanKind, StatusCode

from agents import captured, llm
from agents.models import StepKind
from agents.outcomes import ModelAnswered, ModelFailed, StepOutcome
from agents.store import Claim
from agents.telemetry import Run
from agents.tool_outcomes import error_of, outcome_of
from tools.registry import TOOLS

STOP_SECONDS = 3.0
UNKNOWN_TOOL = "unknown_tool"

Attributes = Mapping[str, str | int | float | tuple[str, ...]]

logger = logging.getLogger(__name__)

# The boundaries that the conventions advise: tokens, and seconds.
TOKENS = [4**power for power in range(14)]
SECONDS = [0.01 * 2**power for power in range(14)]


def start() -> "Spans":
    """Begin to tell, as the environment says. Starts the threads that send."""
    resource = _resource()
    exporters: list[SpanExporter | MetricExporter] = []
    tracing = TracerProvider(resource=resource, shutdown_on_exit=False)
    if settings.TELEMETRY_TRACES:
        exporters.append(to_traces := OTLPSpanExporter())
        tracing.add_span_processor(BatchSpanProcessor(to_traces))
    readers = []
    if settings.TELEMETRY_METRICS:
        exporters.append(to_metrics := OTLPMetricExporter())
        readers.append(PeriodicExportingMetricReader(to_metrics))
    metering = MeterProvider(readers, resource=resource, shutdown_on_exit=False)
    return Spans(tracing, metering, exporters)


def _resource() -> Resource:
    made = Resource.create()
    is_named = not str(made.attributes[SERVICE_NAME]).startswith("unknown_service")
    return made if is_named else made.merge(Resource({SERVICE_NAME: "countersign"}))


class Spans:
    """Tells of a process's work. Its methods are called from any thread."""

    def __init__(
        self,
        tracing: TracerProvider,
        metering: MeterProvider,
        exporters: Sequence[SpanExporter | MetricExporter],
    ) -> None:
        # Not made the process's own: libraries that would trace themselves by it are none of ours.
        self._tracing = tracing
        self._metering = metering
        self._exporters = exporters
        self._tracer = tracing.get_tracer("countersign")
        self._numbers = _Numbers(metering.get_meter("countersign"))

    @contextmanager
    def stretch(self, held: Claim) -> Iterator[None]:
        """`invoke_agent`: in the trace that the task is in, or in one of its own after a wait.

        Such a one leads back to the first by a link: a trace that lasts as long as people take
        to make up their minds is one that no tool shows.
        """
        task = held.task
        first = _context_of(task.traceparent)
        parent = None if held.is_resumed else _context_of(task.traceparent_resumed) or first
        links = [Link(first)] if first is not None and held.is_resumed else []
        attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.provider.name": _provider(),
            "gen_ai.agent.name": task.agent,
            "gen_ai.agent.version": task.prompt_version,
            "gen_ai.request.model": task.model,
            "countersign.task.id": task.pk,
            **_of_step(held),
        }
        with self._span(f"invoke_agent {task.agent}", attributes, parent=parent, links=links):
            yield

    def call(self, held: Claim, run: Run) -> StepOutcome:
        """`chat` around a call of the model, `execute_tool` around one of a tool."""
        return self._chat(held, run) if held.step.kind == StepKind.MODEL else self._tool(held, run)

    def here(self) -> str:
        """The traceparent of the span that this thread is in; "" outside one."""
        context = trace.get_current_span().get_span_context()
        if not context.is_valid:
            return ""
        return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"

    def stop(self) -> None:
        """Send what is left, STOP_SECONDS at most; then whatever is not sent is lost."""
        until = time.monotonic() + STOP_SECONDS
        ends: list[Callable[[], None]] = [self._tracing.shutdown, self._metering.shutdown]
        threads = [threading.Thread(target=end, daemon=True) for end in ends]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))
        if any(thread.is_alive() for thread in threads):
            for exporter in self._exporters:
                exporter.shutdown()  # it tries no more

    def _chat(self, held: Claim, run: Run) -> StepOutcome:
        task = held.task
        named = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": _provider(),
            "gen_ai.request.model": task.model,
            **_server(),
        }
        attributes = {
            **named,
            "gen_ai.request.max_tokens": settings.MODEL_MAX_OUTPUT,
            **_of_step(held),
        }
        began = time.monotonic()
        with self._span(f"chat {task.model}", attributes, kind=SpanKind.CLIENT) as span:
            outcome = run(held)
            told = _of_answer(outcome)
            span.set_attributes(told)
            if llm.takes_temperature(task.model):  # known once it was asked
                span.set_attribute("gen_ai.request.temperature", llm.TEMPERATURE)
            if isinstance(outcome, ModelFailed):
                _fail(span, outcome.kind)
            _tell_words(span, partial(captured.of_chat, held, outcome))
        self._numbers.count(named, told, outcome, seconds=time.monotonic() - began)
        return outcome

    def _tool(self, held: Claim, run: Run) -> StepOutcome:
        step = held.step
        # The model may make a name up, out of what it was told as well.
        name = step.tool if step.tool in TOOLS else UNKNOWN_TOOL
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": step.call_id,
            **_of_step(held),
        }
        with self._span(f"execute_tool {name}", attributes) as span:
            outcome = run(held)
            span.set_attribute("countersign.outcome", outcome_of(outcome))
            error = error_of(outcome)
            if error:
                _fail(span, error)
            _tell_words(span, partial(captured.of_tool, held, outcome))
        return outcome

    @contextmanager
    def _span(
        self,
        name: str,
        attributes: Attributes,
        *,
        kind: SpanKind = SpanKind.INTERNAL,
        parent: SpanContext | None = None,
        links: list[Link] | None = None,
    ) -> Iterator[Span]:
        """A span below `parent`, or below the one that this thread is in.

        What is raised inside is told by its class alone: a message may quote somebody.
        """
        context = trace.set_span_in_context(NonRecordingSpan(parent), Context()) if parent else None
        with self._tracer.start_as_current_span(
            name,
            context=context,
            kind=kind,
            attributes=attributes,
            links=links,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield span
            except BaseException as exc:
                _fail(span, type(exc).__name__)
                raise


class _Numbers:
    """The two histograms of the conventions for clients of a model."""

    def __init__(self, meter: Meter) -> None:
        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage",
            unit="{token}",
            description="Number of input and output tokens used",
            explicit_bucket_boundaries_advisory=TOKENS,
        )
        self._seconds = meter.create_histogram(
            "gen_ai.client.operation.duration",
            unit="s",
            description="GenAI operation duration",
            explicit_bucket_boundaries_advisory=SECONDS,
        )

    def count(
        self, named: Attributes, told: Attributes, outcome: StepOutcome, *, seconds: float
    ) -> None:
        """One call of the model."""
        kept = dict(named)
        if "gen_ai.response.model" in told:
            kept["gen_ai.response.model"] = told["gen_ai.response.model"]
        if isinstance(outcome, ModelFailed):
            self._seconds.record(seconds, kept | {"error.type": outcome.kind})
            return
        self._seconds.record(seconds, kept)
        usage = outcome.reply.usage if isinstance(outcome, ModelAnswered) else None
        if usage is not None:
            self._tokens.record(usage.prompt, kept | {"gen_ai.token.type": "input"})
            self._tokens.record(usage.completion, kept | {"gen_ai.token.type": "output"})


def _of_step(held: Claim) -> dict[str, str | int]:
    return {
        "gen_ai.conversation.id": str(held.task.ticket_id),
        "countersign.step.n": held.step.n,
        "countersign.step.attempt": held.step.attempts,
    }


def _of_answer(outcome: StepOutcome) -> dict[str, str | int | tuple[str, ...]]:
    if not isinstance(outcome, ModelAnswered):
        return {}
    reply = outcome.reply
    told: dict[str, str | int | tuple[str, ...]] = {
        "gen_ai.response.finish_reasons": (reply.finish_reason,),
    }
    if reply.response_id:
        told["gen_ai.response.id"] = reply.response_id
    if reply.model:
        told["gen_ai.response.model"] = reply.model
    if reply.usage is not None:
        told["gen_ai.usage.input_tokens"] = reply.usage.prompt
        told["gen_ai.usage.output_tokens"] = reply.usage.completion
        told["gen_ai.usage.cache_read.input_tokens"] = reply.usage.cached
    return told


def _provider() -> str:
    """Whose API is spoken; `server.address` says who answers it."""
    host = urlsplit(settings.OPENAI_BASE_URL).hostname or ""
    return "azure.ai.openai" if host.endswith(".openai.azure.com") else "openai"


def _server() -> dict[str, str | int]:
    address = urlsplit(settings.OPENAI_BASE_URL)
    port = address.port or (443 if address.scheme == "https" else 80)
    return {"server.address": address.hostname or "", "server.port": port}


def _context_of(traceparent: str) -> SpanContext | None:
    """The place that a traceparent names, as agents.telemetry reads and writes it."""
    if not traceparent:
        return None
    _, trace_id, span_id, flags = traceparent.split("-")
    return SpanContext(
        int(trace_id, 16), int(span_id, 16), is_remote=True, trace_flags=_flags(flags)
    )


def _flags(digits: str) -> trace.TraceFlags:
    return trace.TraceFlags(int(digits, 16))


def _tell_words(span: Span, words: Callable[[], Mapping[str, str]]) -> None:
    if not settings.TELEMETRY_CONTENT or not span.is_recording():
        return
    try:
        span.set_attributes(words())
    except Exception as exc:  # noqa: BLE001 - the outcome is there, and nobody's words are worth a step
        logger.warning("the words of a span were left out: %s", type(exc).__name__)


def _fail(span: Span, error: str) -> None:
    span.set_attribute("error.type", error)
    span.set_status(StatusCode.ERROR)

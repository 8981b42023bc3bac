"""A collector of OpenTelemetry on this machine: takes OTLP over HTTP and says what it was told."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span as Wire
from typing_extensions import override


@dataclass(frozen=True)
class Told:
    """One span as it came."""

    name: str
    kind: str
    trace: str
    id: str
    parent: str
    attributes: dict[str, Any]
    links: list[tuple[str, str]]
    is_error: bool


@dataclass
class Collector:
    url: str
    bodies: list[bytes] = field(default_factory=list)
    spans: list[Told] = field(default_factory=list)
    services: set[str] = field(default_factory=set)
    # name → the points of the newest export of it
    points: dict[str, list[Any]] = field(default_factory=dict)

    def named(self, start: str) -> list[Told]:
        """The spans of one kind of work, in the order of their step and try."""
        found = [span for span in self.spans if span.name.startswith(start)]
        return sorted(found, key=lambda span: span.attributes["countersign.step.n"])

    def point(self, metric: str, **wanted: str) -> Any:
        """The one point of a metric with these attributes, dots written as two underscores."""
        asked = {name.replace("__", "."): value for name, value in wanted.items()}
        (found,) = (
            point
            for point in self.points[metric]
            if asked.items() <= _values(point.attributes).items()
        )
        return found

    def take(self, path: str, body: bytes) -> None:
        self.bodies.append(body)
        if path == "/v1/traces":
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                self.services.add(_values(resource.resource.attributes)["service.name"])
                for scope in resource.scope_spans:
                    self.spans += map(_told, scope.spans)
        elif path == "/v1/metrics":
            for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                for scope in resource.scope_metrics:
                    for metric in scope.metrics:
                        self.points[metric.name] = list(metric.histogram.data_points)


@contextmanager
def collecting() -> Iterator[Collector]:
    """Run a collector until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            collector.take(self.path, self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", "0")
            self.end_headers()

        @override
        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector = Collector(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def silent() -> Iterator[str]:
    """The address of one that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def _told(span: Wire) -> Told:
    return Told(
        name=span.name,
        kind=Wire.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_"),
        trace=span.trace_id.hex(),
        id=span.span_id.hex(),
        parent=span.parent_span_id.hex(),
        attributes=_values(span.attributes),
        links=[(link.trace_id.hex(), link.span_id.hex()) for link in span.links],
        is_error=span.status.code == 2,
    )


def _values(pairs: Any) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(inner) for inner in value.array_value.values]
    return getattr(value, kind)

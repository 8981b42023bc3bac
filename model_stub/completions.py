"""`POST /v1/chat/completions`: authenticate, check, plan or read the script, fault, answer."""

import asyncio
import json
import logging
import secrets
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send
from typing_extensions import override

from model_stub import faults, replies, scripts
from model_stub.calls import CallLog, describe
from model_stub.connections import cut
from model_stub.errors import ApiError
from model_stub.faults import Fault, FaultBook
from model_stub.planner.plan import plan_reply
from model_stub.replies import Reply
from model_stub.scripts import ScriptShelf
from model_stub.wire import ChatRequest, parse_body, parse_request

RULES_MODEL = "countersign-rules"
logger = logging.getLogger("model_stub")


@dataclass
class State:
    """What the process keeps between requests: for control and tests only, never for planning."""

    faults: FaultBook
    calls: CallLog
    scripts: ScriptShelf


class Json(Response):
    """JSON in ASCII, so that any text that came in can go out."""

    media_type = "application/json"

    @override
    def render(self, content: Any) -> bytes:
        return json.dumps(content, separators=(",", ":")).encode("ascii")


class Dropped(Response):
    """No answer: the connection is closed, after `ms` milliseconds or when the client leaves."""

    def __init__(self, ms: int) -> None:
        super().__init__()
        self._ms = ms

    @override
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await _pause(self._ms, receive)
        cut(scope)


class CutBody(Response):
    """The first half of a body whose whole length was announced, then a closed connection."""

    @override
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        half = bytes(self.body)[: len(self.body) // 2]
        await send({"type": "http.response.body", "body": half, "more_body": True})
        cut(scope)


async def _pause(ms: int, receive: Receive) -> None:
    """Wait, but no longer than the client does."""

    async def left() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    try:
        await asyncio.wait_for(left(), ms / 1000)
    except TimeoutError:
        return


async def create(request: Request) -> Response:
    """Answer a chat completion request as the OpenAI API would."""
    state: State = request.app.state.stub
    raw = await request.body()
    entry = state.calls.start(raw)
    began = time.perf_counter()
    try:
        response = await _answer(request, state, raw, entry)
    except ApiError as error:
        entry["status"] = error.status
        entry["error"] = error.code or error.kind
        response = error_response(error)
    response.headers["openai-processing-ms"] = str(round((time.perf_counter() - began) * 1000))
    response.headers["openai-version"] = "2020-10-01"
    response.headers["x-request-id"] = "req_" + secrets.token_hex(16)
    return response


def error_response(error: ApiError) -> Response:
    """Return an error as the API sends it."""
    return Json(error.body(), status_code=error.status, headers=error.headers)


async def _answer(request: Request, state: State, raw: bytes, entry: dict[str, Any]) -> Response:
    authenticate(request)
    body = parse_body(raw)
    describe(entry, body)
    chat = parse_request(body)
    reply = replies.limited(_think(chat, state.scripts), chat)
    taken = state.faults.take(chat, calls_tool=bool(reply.tool_calls))
    entry["faults"] = [rule.fault for rule in taken]
    by_name = {rule.fault: rule for rule in taken}
    if "latency" in by_name:
        await _pause(by_name["latency"].params["ms"], request.receive)
    for rule in taken:
        error = faults.as_error(rule)
        if error is not None:
            raise error
    if "down" in by_name or "hang" in by_name:
        hang = by_name.get("hang")
        return Dropped(hang.params["ms"] if hang else 0)
    reply = _spoiled(reply, by_name)
    _note(entry, reply, chat)
    return _respond(chat, reply, by_name, request.scope)


def authenticate(request: Request) -> None:
    """Accept any bearer key but none and the word `invalid`; raise the API's 401."""
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not key.strip():
        raise ApiError(
            401,
            "You didn't provide an API key. You need to provide your API key in an Authorization "
            "header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY).",
        )
    if key.strip() == "invalid":
        raise ApiError(401, "Incorrect API key provided: invalid.", code="invalid_api_key")


def _think(chat: ChatRequest, shelf: ScriptShelf) -> Reply:
    if chat.model == RULES_MODEL:
        return plan_reply(chat)
    if chat.model.startswith(scripts.PREFIX):
        script = shelf.get(chat.model.removeprefix(scripts.PREFIX))
        if script is not None:
            return script.reply(sum(message["role"] == "assistant" for message in chat.messages))
    raise unknown_model(chat.model)


def unknown_model(name: str) -> ApiError:
    """Return the API's 404 for a model that does not exist."""
    return ApiError(
        404,
        f"The model `{name}` does not exist or you do not have access to it.",
        param="model",
        code="model_not_found",
    )


def _spoiled(reply: Reply, by_name: dict[str, Fault]) -> Reply:
    if "malformed_tool_json" in by_name:
        calls = [replace(call, arguments=_broken(call.arguments)) for call in reply.tool_calls]
        reply = replace(reply, tool_calls=tuple(calls))
    if "missing_usage" in by_name:
        reply = replace(reply, has_usage=False)
    if "empty_choices" in by_name:
        reply = replace(reply, has_choice=False)
    if "endless" in by_name:
        reply = replace(reply, endless=by_name["endless"].params["chunks"])
    return reply


def _broken(arguments: str) -> str:
    """Return the start of the arguments, never valid JSON."""
    return arguments.rstrip()[:-1] or "{"


def _note(entry: dict[str, Any], reply: Reply, chat: ChatRequest) -> None:
    entry["status"] = 200
    entry["finish_reason"] = reply.reason if reply.has_choice else None
    entry["tool_calls"] = [call.name for call in reply.tool_calls]
    entry["usage"] = replies.usage_of(reply, chat) if reply.has_usage else None


def _respond(chat: ChatRequest, reply: Reply, by_name: dict[str, Fault], scope: Scope) -> Response:
    ids: dict[str, Any] = {
        "completion_id": replies.new_completion_id(),
        "created": int(time.time()),
    }
    cut_rule = by_name.get("cut_stream")
    if not chat.stream:
        body = replies.completion(reply, chat, **ids)
        if cut_rule is not None:
            return CutBody(json.dumps(body), media_type="application/json")
        return Json(body)
    limit = cut_rule.params["after_chunks"] if cut_rule is not None else None
    events = _events(chat, reply, ids, limit, scope)
    return StreamingResponse(
        events,
        media_type="text/event-stream; charset=utf-8",
        headers={"cache-control": "no-cache"},
    )


async def _events(
    chat: ChatRequest, reply: Reply, ids: dict[str, Any], limit: int | None, scope: Scope
) -> AsyncIterator[bytes]:
    """Yield server-sent events. A limit cuts the connection after so many, with no [DONE]."""
    for number, chunk in enumerate(replies.chunks(reply, chat, **ids)):
        if number == limit:
            break
        yield b"data: " + json.dumps(chunk, separators=(",", ":")).encode("ascii") + b"\n\n"
        await asyncio.sleep(0)
    if limit is not None:
        cut(scope)
        return
    yield b"data: [DONE]\n\n"

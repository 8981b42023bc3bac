"""`/control/…`: the pretend model's own door for tests. No key, meant for loopback."""

import json
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from model_stub.completions import Json, State
from model_stub.errors import ApiError
from model_stub.wire import parse_body


def _state(request: Request) -> State:
    state: State = request.app.state.stub
    return state


def _no_content() -> Response:
    return Response(status_code=204)


def _not_found(what: str) -> ApiError:
    return ApiError(404, f"There is no such {what}.")


async def faults(request: Request) -> Response:
    """List the fault rules, add one (201), or remove them all (204)."""
    book = _state(request).faults
    if request.method == "POST":
        rule = book.add(parse_body(await request.body()))
        return Json(rule.as_json(), status_code=201)
    if request.method == "DELETE":
        book.remove()
        return _no_content()
    return Json({"faults": book.listed()})


async def one_fault(request: Request) -> Response:
    """Remove one fault rule (204)."""
    if not _state(request).faults.remove(request.path_params["id"]):
        raise _not_found("fault rule")
    return _no_content()


async def calls(request: Request) -> Response:
    """List the calls received, with `?bodies=1` each with its body while kept; or forget them."""
    log = _state(request).calls
    if request.method == "DELETE":
        log.clear()
        return _no_content()
    entries = log.listed()
    if request.query_params.get("bodies") == "1":
        entries = [{**entry, "body": _body(log.body(entry["id"]))} for entry in entries]
    return Json({"calls": entries})


async def one_call(request: Request) -> Response:
    """Return one call with its body."""
    number = int(request.path_params["id"])
    log = _state(request).calls
    for entry in log.listed():
        if entry["id"] == number:
            return Json({**entry, "body": _body(log.body(number))})
    raise _not_found("call")


def _body(text: str | None) -> Any:
    """Return the body as JSON where it is some, else as the text it was."""
    try:
        return json.loads(text) if text is not None else None
    except ValueError:
        return text


async def scripts(request: Request) -> Response:
    """List the scripts by name, or forget those put in at run time (204)."""
    shelf = _state(request).scripts
    if request.method == "DELETE":
        shelf.clear()
        return _no_content()
    return Json({"scripts": shelf.names()})


async def one_script(request: Request) -> Response:
    """Keep a script in memory under its name: a list of replies, or an object with `replies`."""
    name = request.path_params["name"]
    try:
        value = json.loads(await request.body())
    except ValueError as exc:
        raise ApiError(400, "The script is not JSON.") from exc
    script = _state(request).scripts.put(name, value)
    return Json({"name": name, "replies": len(script.replies), "after": script.after})

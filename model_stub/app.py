"""The application: routes, models, errors."""

import logging
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from model_stub import completions, control, scripts
from model_stub.calls import CallLog
from model_stub.completions import RULES_MODEL, Json, State, error_response
from model_stub.errors import ApiError
from model_stub.faults import FaultBook
from model_stub.scripts import ScriptShelf

MODEL_CREATED = 1_767_225_600  # 1 January 2026, the same for every model
logger = logging.getLogger("model_stub")


def make_app(folder: Path) -> Starlette:
    """Return the application, with `folder` as the place of script files."""
    app = Starlette(
        routes=[
            Route("/healthz", healthz),
            Route("/v1/chat/completions", completions.create, methods=["POST"]),
            Route("/v1/models", models),
            Route("/v1/models/{name:path}", one_model),
            Route("/control/faults", control.faults, methods=["GET", "POST", "DELETE"]),
            Route("/control/faults/{id}", control.one_fault, methods=["DELETE"]),
            Route("/control/calls", control.calls, methods=["GET", "DELETE"]),
            Route("/control/calls/{id:int}", control.one_call),
            Route("/control/scripts", control.scripts, methods=["GET", "DELETE"]),
            Route("/control/scripts/{name}", control.one_script, methods=["PUT"]),
        ],
        exception_handlers={
            ApiError: _api_error,
            HTTPException: _http_error,
            Exception: _unexpected,
        },
    )
    app.state.stub = State(FaultBook(), CallLog(), ScriptShelf(folder))
    return app


async def healthz(request: Request) -> Response:
    """Say that the process answers."""
    return Json({"status": "ok"})


def _model(name: str) -> dict[str, object]:
    return {"id": name, "object": "model", "created": MODEL_CREATED, "owned_by": "countersign"}


async def models(request: Request) -> Response:
    """List the models: the rules, and each script."""
    completions.authenticate(request)
    state: State = request.app.state.stub
    names = [RULES_MODEL, *(scripts.PREFIX + name for name in state.scripts.names())]
    return Json({"object": "list", "data": [_model(name) for name in names]})


async def one_model(request: Request) -> Response:
    """Return one model, or the API's 404."""
    completions.authenticate(request)
    state: State = request.app.state.stub
    name = request.path_params["name"]
    scripted = name.startswith(scripts.PREFIX) and state.scripts.get(
        name.removeprefix(scripts.PREFIX)
    )
    if name != RULES_MODEL and not scripted:
        raise completions.unknown_model(name)
    return Json(_model(name))


async def _api_error(request: Request, exc: Exception) -> Response:
    if not isinstance(exc, ApiError):
        raise exc
    return error_response(exc)


async def _http_error(request: Request, exc: Exception) -> Response:
    if not isinstance(exc, HTTPException):
        raise exc
    message = f"Invalid URL ({request.method} {request.url.path})"
    return error_response(ApiError(exc.status_code, message))


async def _unexpected(request: Request, exc: Exception) -> Response:
    logger.error("%s %s failed", request.method, request.url.path, exc_info=exc)
    message = "The server had an error while processing your request. Sorry about that!"
    return error_response(ApiError(500, message, kind="server_error"))

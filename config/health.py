"""Is this process alive, and can it do its work? Asked by supervisors and load balancers.

Answered before any other middleware: a probe comes with whatever Host it likes and over plain HTTP.
"""

import logging
import tomllib
from collections.abc import Callable
from functools import cache

import redis
from asgiref.sync import iscoroutinefunction, sync_to_async
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.decorators import sync_and_async_middleware

from agents.lag import ready_lag
from tools.adapters import list_stopped

REDIS_SECONDS = 1.0

logger = logging.getLogger(__name__)


@sync_and_async_middleware
def probes(get_response: Callable[[HttpRequest], object]) -> Callable[[HttpRequest], object]:
    """Middleware: answers /healthz/live, /healthz/ready and /version itself."""
    if iscoroutinefunction(get_response):

        async def answer_async(request: HttpRequest) -> object:
            answer = _answer_to(request)
            if answer is None:
                return await get_response(request)
            return await sync_to_async(answer, thread_sensitive=False)(request)

        return answer_async

    def answer_sync(request: HttpRequest) -> object:
        answer = _answer_to(request)
        return get_response(request) if answer is None else answer(request)

    return answer_sync


def _answer_to(request: HttpRequest) -> Callable[[HttpRequest], HttpResponse] | None:
    answer = _PROBES.get(request.path_info)
    if answer is not None and request.method not in {"GET", "HEAD"}:
        return _only_get
    return answer


def _only_get(request: HttpRequest) -> HttpResponse:
    return HttpResponse(status=405, headers={"Allow": "GET, HEAD"})


def live(request: HttpRequest) -> HttpResponse:
    """200 as long as the process answers at all."""
    return _document({"status": "ok"})


def version(request: HttpRequest) -> HttpResponse:
    """Which Countersign this is."""
    return _document({"name": "countersign", "version": version_number()})


def ready(request: HttpRequest) -> HttpResponse:
    """200 when the process can do its work; 503 naming what is missing.

    How long the oldest ready task has waited is always told, and counts only from READY_MAX_LAG
    seconds on: slow workers are no reason to take every web process out of service. Nor are shops
    that are not called at the moment, which are only counted.
    """
    missing: list[str] = []
    checks: dict[str, object] = {"database": _check_database(), "redis": _check_redis()}
    if checks["database"] == "ok":
        checks["migrations"] = _check_migrations()
    if checks.get("migrations") == "ok":
        checks["shops_not_called"] = list_stopped().count()
        lag = ready_lag()
        checks["queue_lag_seconds"] = round(lag, 1)
        if settings.READY_MAX_LAG and lag > settings.READY_MAX_LAG:
            missing.append("workers")
    _give_connection_back()
    missing += [name for name, found in checks.items() if found == "missing"]
    status = "ok" if not missing else "unavailable"
    return _document(
        {"status": status, "missing": missing, "checks": checks}, status=503 if missing else 200
    )


@cache
def version_number() -> str:
    with (settings.BASE_DIR / "pyproject.toml").open("rb") as file:
        return str(tomllib.load(file)["project"]["version"])


def _check_database() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError as exc:
        logger.warning("not ready: the database: %s", type(exc).__name__)
        return "missing"
    return "ok"


def _check_redis() -> str:
    try:
        with redis.Redis.from_url(
            settings.REDIS_URL, socket_timeout=REDIS_SECONDS, socket_connect_timeout=REDIS_SECONDS
        ) as client:
            client.ping()
    except redis.RedisError as exc:
        logger.warning("not ready: Redis: %s", type(exc).__name__)
        return "missing"
    return "ok"


class _Migrations:
    """Once they were all applied to a database they stay so; until then each probe looks."""

    applied_to: str = ""


def _check_migrations() -> str:
    database = f"{connection.settings_dict['HOST']}/{connection.settings_dict['NAME']}"
    if _Migrations.applied_to == database:
        return "ok"
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        return "missing"
    _Migrations.applied_to = database
    return "ok"


def _give_connection_back() -> None:
    """The probe may run in a thread that no request ends."""
    if not connection.in_atomic_block:
        connection.close()


def _document(body: dict[str, object], *, status: int = 200) -> HttpResponse:
    return JsonResponse(body, status=status, headers={"Cache-Control": "no-store"})


_PROBES: dict[str, Callable[[HttpRequest], HttpResponse]] = {
    "/healthz/live": live,
    "/healthz/ready": ready,
    "/version": version,
}

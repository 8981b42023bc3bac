"""The shop's command line: `serve` runs it, `load_shop` loads a catalogue."""

import argparse
import base64
import binascii
import fcntl
import os
import re
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType

import uvicorn

from orders_stub import catalogue, times
from orders_stub.app import build_app
from orders_stub.catalogue import CatalogueError
from orders_stub.config import DAY, Config
from orders_stub.database import Database
from orders_stub.shop import Shop, open_shop

DATA = "ORDERS_STUB_DATA"
BACKLOG = 512
ORIGIN = re.compile(r"https?://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(:[0-9]{1,5})?/?")
# What the demo's events are signed with; it opens nothing but the demo.
WEBHOOK_SECRET = "whsec_dGhlIHByZXRlbmQgc2hvcCBzaWducyBpdHMgZXZlbnRz"  # noqa: S105
SECRET = "demo-client-secret-of-the-pretend-shop"  # noqa: S105 - a published demo default


class CommandError(Exception):
    """A command that cannot be done, with the reason for whoever typed it."""


def main(arguments: list[str] | None = None) -> int:
    """Run a command; 0 when it was done, 1 with a message on stderr when not."""
    options = _parser().parse_args(arguments)
    try:
        return serve(options) if options.command == "serve" else load_shop(options)
    except CommandError as exc:
        sys.stderr.write(f"orders_stub: {exc}\n")
        return 1


def serve(options: argparse.Namespace) -> int:
    """Serve the shop until it is told to stop."""
    config = Config(
        data=_data(options),
        agent_url=_origin(options.agent_url),
        client_id=os.environ.get("ORDERS_STUB_CLIENT_ID") or "countersign",
        client_secret=os.environ.get("ORDERS_STUB_CLIENT_SECRET") or SECRET,
        key_window=options.key_window,
        demo=not options.no_demo,
        webhook_url=options.webhook_url,
        webhook_secrets=_webhook_secrets(),
    )
    with ExitStack() as stack:
        stack.enter_context(_only_server(config.data))
        listener = stack.enter_context(_listen(options.host, options.port))
        mail = None
        if options.mail_port is not None:
            mail = stack.enter_context(_listen(options.host, options.mail_port))
        _serve_on(listener, open_shop(config), options.host, mail)
    return 0


def _serve_on(
    listener: socket.socket, shop: Shop, host: str, mail: socket.socket | None = None
) -> None:
    server = uvicorn.Server(
        uvicorn.Config(
            build_app(shop, mail),
            log_level="warning",
            access_log=False,
            lifespan="on",
            server_header=False,
            timeout_graceful_shutdown=1,
        )
    )

    def end(_number: int, _frame: FrameType | None) -> None:
        server.should_exit = True

    # In force until uvicorn's own handlers are, and once more when it hands the signal on.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    listener.listen(BACKLOG)
    port = listener.getsockname()[1]
    shown = f"[{host}]" if ":" in host else host
    # From here on the system queues connections, so nobody is turned away who reads this line.
    sys.stdout.write(f"orders_stub ready: http://{shown}:{port} (data: {shop.config.data})\n")
    sys.stdout.flush()
    try:
        server.run(sockets=[listener])
    finally:
        shop.db.close()


def load_shop(options: argparse.Namespace) -> int:
    """Load a catalogue file, whole or not at all; the shop may be running meanwhile."""
    db = Database(_data(options))
    try:
        loaded = catalogue.load_file(db, options.file, at=times.now())
    except CatalogueError as exc:
        problems = "\n  ".join(exc.problems)
        message = f"{options.file} was refused, nothing was changed:\n  {problems}"
        raise CommandError(message) from exc
    finally:
        db.close()
    sys.stdout.write(f"{loaded.summary()}\n")
    return 0


def _data(options: argparse.Namespace) -> Path:
    data: Path | None = options.data
    if data is None and os.environ.get(DATA):
        data = Path(os.environ[DATA])
    if data is None:
        raise CommandError(f"say where the shop keeps its data: --data DIR, or {DATA}")
    if data.exists() and not data.is_dir():
        raise CommandError(f"{data} is not a folder")
    return data.resolve()


def _origin(url: str) -> str:
    """An origin fit for the content security policy: scheme, host and port, nothing else."""
    if not ORIGIN.fullmatch(url):
        raise CommandError(f"--agent-url must be like http://127.0.0.1:8000, not {url}")
    return url.rstrip("/")


def _webhook_secrets() -> tuple[str, ...]:
    """One secret, or several with blanks between while one takes the place of another."""
    given = os.environ.get("ORDERS_STUB_WEBHOOK_SECRET") or WEBHOOK_SECRET
    secrets = tuple(given.split())
    for secret in secrets:
        try:
            base64.b64decode(secret.removeprefix("whsec_"), validate=True)
        except binascii.Error as exc:
            raise CommandError("ORDERS_STUB_WEBHOOK_SECRET is not whsec_ and base64") from exc
    return secrets


@contextmanager
def _only_server(data: Path) -> Iterator[None]:
    """One server a data folder: keys in use are known to one process only."""
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (data / "serve.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as exc:
            raise CommandError(f"another shop is being served from {data} already") from exc
        yield


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio switches Nagle's delay off only for sockets that name their protocol.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as exc:
        listener.close()
        message = f"cannot listen on {host}:{port} ({exc.strerror}); choose another --port"
        raise CommandError(message) from exc
    return listener


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m orders_stub", description="A pretend shop for Countersign's demo and tests."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    serving = commands.add_parser("serve", help="serve the shop until stopped")
    serving.add_argument("--host", default="127.0.0.1", help="address to listen on")
    serving.add_argument("--port", type=int, default=8001, help="0 takes any free port")
    serving.add_argument("--agent-url", default="http://127.0.0.1:8000", metavar="URL")
    serving.add_argument(
        "--key-window",
        type=float,
        default=DAY,
        metavar="SECONDS",
        help="how long an idempotency key is remembered (24 hours)",
    )
    serving.add_argument(
        "--mail-port", type=int, metavar="PORT", help="take e-mails over SMTP on this port too"
    )
    serving.add_argument(
        "--webhook-url", default="", metavar="URL", help="tell of what happens by signed webhooks"
    )
    serving.add_argument("--no-demo", action="store_true", help="start without the demo catalogue")
    loading = commands.add_parser("load_shop", help="load a catalogue of customers and orders")
    loading.add_argument("file", type=Path)
    for command in (serving, loading):
        command.add_argument("--data", type=Path, metavar="DIR", help=f"data folder (or {DATA})")
    return parser


if __name__ == "__main__":
    sys.exit(main())

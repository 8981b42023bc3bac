"""`python -m model_stub serve`: run the pretend model as a process of its own."""

import argparse
import logging
import os
import socket
import sys
from pathlib import Path

import uvicorn
from typing_extensions import override

from model_stub.app import make_app
from model_stub.connections import CuttableProtocol

DEFAULT_PORT = 8002
SCRIPTS_ENV = "MODEL_STUB_SCRIPTS"
DEFAULT_SCRIPTS = Path(__file__).resolve().parents[1] / "tests" / "scripts"


class _Server(uvicorn.Server):
    """Says that it is ready once it is, on one line that a parent process can read."""

    def __init__(self, config: uvicorn.Config, url: str) -> None:
        super().__init__(config)
        self._url = url

    @override
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        sys.stdout.write(f"model_stub ready on {self._url}\n")
        sys.stdout.flush()


def serve(*, host: str, port: int, scripts: Path) -> int:
    """Serve until SIGINT or SIGTERM. Port 0 takes a free one. Return the exit status."""
    logging.basicConfig(level=logging.INFO, format="model_stub %(levelname)s %(message)s")
    # The protocol is named so that asyncio turns Nagle's algorithm off for accepted connections.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as exc:
        sys.stderr.write(
            f"model_stub: cannot listen on {host}:{port}: {exc.strerror}. "
            "Stop what uses the port or give another one with --port.\n"
        )
        return 1
    config = uvicorn.Config(
        make_app(scripts),
        http=CuttableProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",
        access_log=False,
        timeout_graceful_shutdown=1,
    )
    url = f"http://{host}:{listener.getsockname()[1]}/v1"
    _Server(config, url).run(sockets=[listener])
    return 0


def main(argv: list[str] | None = None) -> int:
    """Read the command line and do what it says. Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m model_stub", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("serve", help="serve the OpenAI chat completions API")
    command.add_argument("--host", default="127.0.0.1")
    command.add_argument("--port", type=int, default=DEFAULT_PORT, help="0 takes a free port")
    command.add_argument(
        "--scripts",
        type=Path,
        default=Path(os.environ.get(SCRIPTS_ENV) or DEFAULT_SCRIPTS),
        help=f"folder of script files (default: ${SCRIPTS_ENV}, else {DEFAULT_SCRIPTS.name})",
    )
    args = parser.parse_args(argv)
    return serve(host=args.host, port=args.port, scripts=args.scripts)


if __name__ == "__main__":
    raise SystemExit(main())

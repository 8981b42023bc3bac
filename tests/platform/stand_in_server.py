"""Runs the real `script/server` with small programs in place of the product's: a start in a second.

Called as a program of its own; the arguments are those of `script/server`.
"""

import sys

from typing_extensions import override

from script.lib import programs, server
from script.lib.programs import Local, Program

WEB = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path in {"/healthz/ready", "/healthz"} else 404)
        self.end_headers()
    def log_message(self, *words): print(*words[:1], flush=True)
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
WAIT = "import time; time.sleep(120)"
STEP = "import os; print('demo', os.environ['COUNTERSIGN_DEMO'])"


class SmallLocal(Local):
    """The same programs by name and port, with nothing behind them."""

    @override
    def _module(self, name: str, module: str, *words: str) -> Program:
        port = self.ports.named().get(name)
        return (
            self._program(name, "-c", WEB, str(port)) if port else self._program(name, "-c", WAIT)
        )

    @override
    def _manage(self, name: str, *words: str) -> Program:
        broken = name == "migrate" and self.env.get("BROKEN_MIGRATION")
        code = "raise SystemExit('no such table')" if broken else STEP
        return self._program(name, "-c", WAIT if name == "sealer" else code)


programs.Local = SmallLocal  # type: ignore[misc]
sys.exit(server.main(sys.argv[1:]))

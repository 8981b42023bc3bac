"""The process: how it starts, and how it says that it cannot."""

import subprocess
import sys

from tests.model_server import ROOT, run_model


def test_a_taken_port_is_named_and_the_process_ends():
    with run_model() as first:
        port = first.url.rsplit(":", 1)[1].removesuffix("/v1")
        second = subprocess.run(
            [sys.executable, "-m", "model_stub", "serve", "--port", port],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )

    assert second.returncode == 1
    assert f"cannot listen on 127.0.0.1:{port}" in second.stderr
    assert "--port" in second.stderr

"""The commands as an operator runs them: beside the running server, and on a machine of its own."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from script.lib import keys, postgres
from script.lib.backup import archive
from script.lib.bootstrap import ROOT
from tests.live import Product

STORES = ("DATABASE_URL", "REDIS_URL", *keys.MAKERS)


@pytest.fixture
def elsewhere() -> Iterator[Path]:
    """A data folder of another machine, which PostgreSQL's own user can reach."""
    folder = Path(tempfile.mkdtemp(prefix="countersign-test-"))
    folder.chmod(0o711)
    yield folder
    postgres.remove_elsewhere(folder)
    shutil.rmtree(folder)


def run(name: str, folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """A command of `script/` on this data folder, with no store of anybody's named."""
    env = {key: value for key, value in os.environ.items() if key not in STORES}
    return subprocess.run(
        [sys.executable, str(ROOT / "script" / name), *words],
        env={**env, "COUNTERSIGN_DATA": str(folder)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.mark.timeout(600)
def test_a_backup_of_the_running_server_is_restored_on_another_machine(
    product: Product, elsewhere: Path, tmp_path: Path
):
    taken = run("backup", product.folder, "--to", str(tmp_path))
    assert taken.returncode == 0, taken.stderr
    (path,) = tmp_path.iterdir()
    assert taken.stdout.strip() == str(path)
    refused = run("restore", product.folder, str(path), "--replace", "--yes")
    assert (refused.returncode, "a server already runs" in refused.stderr) == (1, True)
    without_keys = run("restore", elsewhere, str(path))
    assert (without_keys.returncode, "which is not known here" in without_keys.stderr) == (1, True)

    shutil.rmtree(elsewhere / "secrets")
    shutil.copytree(product.folder / "secrets", elsewhere / "secrets")
    restored = run("restore", elsewhere, str(path), "--by", "dana")
    assert restored.returncode == 0, restored.stderr
    for said in ("The chain holds", "Looking before every first send", "No list of erasures"):
        assert said in restored.stderr

    again = run("backup", elsewhere)
    assert again.returncode == 0, again.stderr
    with archive.reading(path) as first, archive.reading(Path(again.stdout.strip())) as second:
        was, now = first.manifest, second.manifest
    assert now.head == was.head
    assert now.rows["agents_task"] == was.rows["agents_task"]
    assert now.rows["tools_lookfirst"] > was.rows["tools_lookfirst"]
    twice = run("restore", elsewhere, str(path))
    assert (twice.returncode, "is not empty" in twice.stderr) == (1, True)

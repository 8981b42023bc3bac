"""One pretend model for the tests that speak to it over HTTP."""

from collections.abc import Iterator

import openai
import pytest

from tests.model_server import ModelServer, run_model


@pytest.fixture(scope="session")
def _server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModelServer]:
    folder = tmp_path_factory.mktemp("scripts")
    (folder / "from_file.json").write_text('[{"content": "Read from a file."}]')
    (folder / "broken.json").write_text("{not json")
    with run_model(scripts=folder) as server:
        yield server


@pytest.fixture
def server(_server: ModelServer) -> ModelServer:
    """The running model, with nothing left over from other tests."""
    _server.clear()
    return _server


@pytest.fixture
def client(server: ModelServer) -> Iterator[openai.OpenAI]:
    """The real client, with its own retries off."""
    with openai.OpenAI(base_url=server.url, api_key="any", max_retries=0, timeout=10) as client:
        yield client

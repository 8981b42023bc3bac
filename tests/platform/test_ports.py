"""A taken port is named, with its holder and a way out."""

import os
import socket

import pytest

from script.lib import ports
from script.lib.bootstrap import SetupError


@pytest.fixture
def taken():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_taken_port_is_refused_with_its_holder_and_ports_that_are_free(taken):
    with pytest.raises(SetupError) as refusal:
        ports.require_free({"web": taken})

    text = str(refusal.value)
    assert f"port {taken} (web) is taken by " in text
    assert f"(process {os.getpid()})" in text
    suggested = int(text.split("PORT=")[1].split()[0])
    assert all(map(ports.is_free, ports.Ports(suggested).named().values()))


def test_every_taken_port_is_named_at_once(taken):
    with socket.create_server(("127.0.0.1", 0)) as other:
        second = other.getsockname()[1]
        with pytest.raises(SetupError) as refusal:
            ports.require_free({"web": taken, "shop": second})

    assert f"{taken} (web)" in str(refusal.value)
    assert f"{second} (shop)" in str(refusal.value)


def test_a_port_taken_on_every_address_counts_as_taken():
    with socket.create_server(("0.0.0.0", 0)) as server:  # noqa: S104 - the case in question
        assert not ports.is_free(server.getsockname()[1])


def test_a_port_is_free_again_once_its_server_has_gone():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client, server.accept()[0]:
            client.sendall(b"x")

    assert ports.is_free(port)


@pytest.mark.parametrize("text", ["", "http", "-1", "80", "65534", "8000.5", "٨٠٠٠"])
def test_an_odd_port_is_refused_with_what_is_allowed(text):
    with pytest.raises(SetupError, match="from 1024 to 65532, or 0"):
        ports.choose(text)


def test_port_zero_takes_free_neighbours():
    chosen = ports.choose("0")

    assert list(chosen.named().values()) == [chosen.web + n for n in range(4)]
    assert all(map(ports.is_free, chosen.named().values()))

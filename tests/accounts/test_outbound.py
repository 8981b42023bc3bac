"""An address that a shop has set leads out, or nowhere."""

import socket
from typing import Any

import pytest
from django.core.exceptions import ValidationError

from accounts import wire
from accounts.outbound import ForbiddenAddressError, Rules, check_addresses, check_url
from accounts.validators import validate_base_url
from tests.clients.canned import answer, canned_server

DEMO = Rules(allows_loopback=True)
DEPLOYED = Rules()
NAMED = Rules(inside_hosts=frozenset({"shop.internal", "10.0.0.7"}))

INSIDE = [
    "127.0.0.1", "127.8.8.8", "0.1.2.3", "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1",
    "169.254.169.254", "192.0.0.192", "168.63.129.16", "198.18.0.1", "224.0.0.1", "255.255.255.255",
    "240.0.0.1", "::1", "::", "fe80::1", "fc00::1", "fd00:ec2::254", "ff02::1", "fec0::1", "2001:db8::1",
    "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::",
    "2002:a00:1::", "::7f00:1",
]  # fmt: skip
OUTSIDE = ["93.184.215.14", "8.8.8.8", "2606:2800:21f::1", "::ffff:8.8.8.8", "64:ff9b::808:808"]


@pytest.mark.parametrize("address", INSIDE)
def test_an_address_inside_is_refused_written_out_or_behind_a_name(address):
    url = f"https://[{address}]/hook" if ":" in address else f"https://{address}/hook"
    with pytest.raises(ForbiddenAddressError):
        check_url(url, DEPLOYED)
    with pytest.raises(ForbiddenAddressError):
        check_addresses("shop.example", [address], DEPLOYED)


@pytest.mark.parametrize("address", OUTSIDE)
def test_an_address_outside_may_be_called(address):
    check_url(f"https://[{address}]" if ":" in address else f"https://{address}", DEPLOYED)
    check_addresses("shop.example", [address], DEPLOYED)


def test_one_address_inside_among_others_is_enough_to_refuse_a_name():
    with pytest.raises(ForbiddenAddressError):
        check_addresses("shop.example", ["93.184.215.14", "10.0.0.1"], DEPLOYED)


@pytest.mark.parametrize(
    "url",
    ["http://shop.example", "http://8.8.8.8", "ftp://shop.example", "file:///etc/passwd", "https://", "shop.example",
     "https://user:pw@shop.example", "https://shop.example:port", "https://[::1", "http://localhost",
     "http://shop.internal.example"],
)  # fmt: skip
def test_only_https_to_a_plain_host_is_an_address(url):
    with pytest.raises(ForbiddenAddressError):
        check_url(url, DEPLOYED)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8001", "http://[::1]:8001", "http://localhost:8001"]
)
def test_the_demo_may_call_this_machine_and_nothing_else_inside(url):
    check_url(url, DEMO)
    check_addresses("localhost", ["127.0.0.1", "::1"], DEMO)
    for other in ("http://10.0.0.1", "https://10.0.0.1", "http://169.254.169.254", "http://shop"):
        with pytest.raises(ForbiddenAddressError):
            check_url(other, DEMO)
    with pytest.raises(ForbiddenAddressError):
        check_addresses("localhost", ["10.0.0.1"], DEMO)


def test_hosts_inside_that_the_operator_named_may_be_called_but_no_metadata_service():
    check_url("http://shop.internal:8001", NAMED)
    check_url("http://Shop.Internal.:8001", NAMED)
    check_url("http://10.0.0.7", NAMED)
    check_addresses("shop.internal", ["10.0.0.9"], NAMED)
    with pytest.raises(ForbiddenAddressError):
        check_addresses("shop.internal", ["169.254.169.254"], NAMED)
    with pytest.raises(ForbiddenAddressError):
        check_addresses("other.internal", ["10.0.0.9"], NAMED)


def test_a_shops_setting_is_held_to_it(settings):
    settings.DEMO = False
    with pytest.raises(ValidationError, match="leads inside"):
        validate_base_url("https://169.254.169.254")
    with pytest.raises(ValidationError, match="https"):
        validate_base_url("http://orders_stub:8001")

    settings.INSIDE_HOSTS = ["orders_stub"]
    validate_base_url("http://orders_stub:8001")


def test_a_name_that_leads_inside_gets_no_byte(monkeypatch, settings):
    settings.DEMO = False
    with canned_server(answer({})) as server:
        port = int(server.url.rpartition(":")[2])
        asked = stand_for(monkeypatch, "rebound.example", ["127.0.0.1"])

        for call in (read, write):
            with pytest.raises(wire.NotSentError):
                call(f"https://rebound.example:{port}")

        assert server.heard == []
    assert asked == ["rebound.example"] * 2


def test_a_number_in_disguise_gets_no_byte(settings):
    settings.DEMO = False
    with canned_server(answer({})) as server:
        port = int(server.url.rpartition(":")[2])
        for host in ("2130706433", "0x7f.1", "127.1", "localhost"):
            with pytest.raises(wire.NotSentError):
                write(f"https://{host}:{port}")

        assert server.heard == []


def test_a_name_is_resolved_once_and_what_was_judged_is_what_is_called(monkeypatch, settings):
    settings.INSIDE_HOSTS = ["rebound.example"]
    with canned_server(answer({"ok": True})) as server:
        port = int(server.url.rpartition(":")[2])
        asked = stand_for(monkeypatch, "rebound.example", ["127.0.0.1"], then="169.254.169.254")

        assert write(f"http://rebound.example:{port}/hook").json() == {"ok": True}

        assert asked == ["rebound.example"]
        assert f"Host: rebound.example:{port}".encode() in server.heard[0]


def test_the_next_address_of_a_name_is_tried_when_one_does_not_answer(monkeypatch, settings):
    settings.INSIDE_HOSTS = ["shop.example"]
    with canned_server(answer({"ok": True})) as server:
        port = int(server.url.rpartition(":")[2])
        stand_for(monkeypatch, "shop.example", ["127.0.0.9", "127.0.0.1"])

        assert write(f"http://shop.example:{port}").status == 200


def test_an_answer_that_points_inside_is_not_followed(settings):
    settings.DEMO = True
    with (
        canned_server(answer({})) as inside,
        canned_server(answer(b"", 307, Location=inside.url)) as server,
    ):
        assert read(server.url).status == 307
        assert write(server.url).status == 307

        assert inside.heard == []


def read(url: str) -> wire.Answer:
    return wire.read(url, headers={}, params={}, timeout=3)


def write(url: str) -> wire.Answer:
    return wire.write("POST", url, headers={}, body=b"{}", timeout=3)


def stand_for(
    monkeypatch: pytest.MonkeyPatch, name: str, addresses: list[str], *, then: str = ""
) -> list[str]:
    """Resolve `name` to `addresses`, and from the second time on to `then`; who asked is listed."""
    real = socket.getaddrinfo
    asked: list[str] = []

    def resolve(host: Any, port: Any, *args: Any, **options: Any) -> Any:
        if host != name:
            return real(host, port, *args, **options)
        asked.append(host)
        given = [then] if then and len(asked) > 1 else addresses
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (given_, port)) for given_ in given]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return asked

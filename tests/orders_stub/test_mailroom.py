"""The pretend shop's mail server: what it takes, keeps, shows, and how it fails."""

import smtplib
import socket
from collections.abc import Iterator
from email.message import EmailMessage
from pathlib import Path

import httpx
import pytest

from tests.stubs import RunningShop, run_shop


@pytest.fixture
def mail_shop(tmp_path: Path) -> Iterator[tuple[RunningShop, int]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with run_shop(tmp_path / "shop", arguments=("--mail-port", str(port))) as shop:
        yield shop, port


def a_mail() -> EmailMessage:
    message = EmailMessage()
    message["From"] = "care@shop.example"
    message["To"] = "ada@example.com"
    message["Subject"] = "Closed — thank you"
    message["Message-ID"] = "<task-1-step-2@shop.example>"
    message.set_content("Hello,\nit is closed.\n")
    return message


def send(port: int) -> None:
    with smtplib.SMTP("127.0.0.1", port, timeout=5) as server:
        server.send_message(a_mail())


def kept(shop: RunningShop) -> list[dict[str, str]]:
    mails: list[dict[str, str]] = shop.http.get("/control/mail").json()["mails"]
    return mails


def test_an_e_mail_is_kept_as_it_came(mail_shop: tuple[RunningShop, int]):
    shop, port = mail_shop

    send(port)

    (mail,) = kept(shop)
    assert mail["recipient"] == "ada@example.com"
    assert mail["subject"] == "Closed — thank you"
    assert mail["message_id"] == "<task-1-step-2@shop.example>"
    assert mail["text"] == "Hello,\nit is closed.\n"


def test_a_customer_reads_their_own_mail_and_nobody_elses(mail_shop: tuple[RunningShop, int]):
    shop, port = mail_shop
    send(port)

    pages = {}
    for customer in ("ada", "bob"):
        with httpx.Client(base_url=shop.url, follow_redirects=True) as browser:
            browser.post("/sign-in", json={"customer": customer}).raise_for_status()
            pages[customer] = browser.get("/mail").text

    assert "it is closed." in pages["ada"]
    assert "it is closed." not in pages["bob"]


@pytest.mark.parametrize(("status", "code"), [(400, 550), (500, 451)])
def test_a_refused_e_mail_is_not_kept(mail_shop: tuple[RunningShop, int], status: int, code: int):
    shop, port = mail_shop
    shop.fault("error_before", scope={"path": "/smtp"}, status=status)

    with pytest.raises(smtplib.SMTPDataError) as refused:
        send(port)

    assert refused.value.smtp_code == code
    assert kept(shop) == []


def test_a_lost_answer_hides_an_e_mail_that_was_kept(mail_shop: tuple[RunningShop, int]):
    shop, port = mail_shop
    shop.fault("error_after", scope={"path": "/smtp"})

    with pytest.raises(smtplib.SMTPDataError):
        send(port)

    assert len(kept(shop)) == 1

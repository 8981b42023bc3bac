"""One e-mail over a real SMTP server: taken, refused, not sent, or unknown."""

import socket
import threading
from collections.abc import Iterator
from email import message_from_bytes

import pytest

from tests.postbox import Postbox, run_postbox
from tools.clients.errors import RefusedError, UnavailableError, UnknownOutcomeError
from tools.clients.mail import Mail, MailRejectedError, MailServer

MAIL = Mail(
    sender="care@shop.example",
    recipient="ada@example.com",
    subject="Your request is closed — thank you",
    text="Dear Ada,\n.\nIt is closed.\n",
    message_id="<task-1-step-4@shop.example>",
)


@pytest.fixture
def postbox() -> Iterator[tuple[Postbox, MailServer]]:
    with run_postbox() as box:
        yield box, MailServer(box.url, timeout=2)


def test_the_server_takes_exactly_what_was_sealed(postbox: tuple[Postbox, MailServer]):
    box, server = postbox

    server.send(MAIL)

    (envelope,) = box.taken
    assert (envelope.mail_from, envelope.rcpt_tos) == ("care@shop.example", ["ada@example.com"])
    message = message_from_bytes(envelope.content)
    assert message["Message-ID"] == "<task-1-step-4@shop.example>"
    payload = message.get_payload(decode=True)
    assert isinstance(payload, bytes)
    assert payload.decode().replace("\r\n", "\n") == MAIL.text


@pytest.mark.parametrize("which", ["refuse_recipient", "refuse_text"])
def test_a_refusal_is_definite(postbox: tuple[Postbox, MailServer], which: str):
    box, server = postbox
    setattr(box, which, "550 no such mailbox")

    with pytest.raises(RefusedError) as refused:
        server.send(MAIL)

    assert refused.value.status == 550
    assert box.taken == []


@pytest.mark.parametrize("which", ["refuse_recipient", "refuse_text"])
def test_a_server_that_says_not_now_has_taken_nothing(
    postbox: tuple[Postbox, MailServer], which: str
):
    box, server = postbox
    setattr(box, which, "451 greylisted, try again")

    with pytest.raises(UnavailableError):
        server.send(MAIL)

    assert box.taken == []


def test_a_server_that_is_not_there_was_sent_nothing():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]

    with pytest.raises(UnavailableError):
        MailServer(f"smtp://127.0.0.1:{port}", timeout=1).send(MAIL)


def _answer_and_hang_up(listener: socket.socket, answers: list[bytes]) -> None:
    """Speak SMTP up to the last of the answers, read what follows, and hang up."""
    connection, _ = listener.accept()
    with connection:
        for answer in answers:
            connection.sendall(answer)
            connection.recv(65536)


@pytest.mark.parametrize(
    ("answers", "error"),
    [
        ([b"220 hi\r\n"], UnavailableError),
        ([b"220 hi\r\n", b"250 hello\r\n"], UnavailableError),
        ([b"220 hi\r\n", b"250 hello\r\n", b"250 ok\r\n"], UnavailableError),
        (
            [b"220 hi\r\n", b"250 hello\r\n", b"250 ok\r\n", b"250 ok\r\n", b"354 go on\r\n"],
            UnknownOutcomeError,
        ),
    ],
    ids=["greeting", "hello", "sender", "text"],
)
def test_where_the_connection_breaks_decides_what_is_known(
    answers: list[bytes], error: type[Exception]
):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        server = threading.Thread(target=_answer_and_hang_up, args=(listener, answers))
        server.start()

        with pytest.raises(error):
            MailServer(f"smtp://127.0.0.1:{port}", timeout=2).send(MAIL)

        server.join()


@pytest.mark.parametrize("field", ["sender", "recipient", "subject", "message_id"])
@pytest.mark.parametrize("evil", ["x\r\nBcc: evil@example.com", "x\ny", "x\0y"])
def test_a_header_cannot_break_out_of_its_line(
    postbox: tuple[Postbox, MailServer], field: str, evil: str
):
    box, server = postbox
    values = {**MAIL.__dict__, field: evil}

    with pytest.raises(MailRejectedError):
        server.send(Mail(**values))

    assert box.taken == []

"""Send one sealed e-mail over SMTP, and tell apart what is known of it.

SMTP has no key and no look-up: once the message's last line has left, only the server's answer says
whether it was taken. So a refusal is definite, whatever fails before the text was sent means that
nothing was sent, and whatever fails after it is unknown and never tried again by itself.
"""

import smtplib
import ssl
from dataclasses import dataclass
from email.message import EmailMessage
from email.policy import SMTP
from typing import NoReturn
from urllib.parse import unquote, urlsplit

from tools.clients.errors import RefusedError, UnavailableError, UnknownOutcomeError
from tools.trigger import Point, reach

FORBIDDEN_IN_HEADERS = ("\r", "\n", "\0")


@dataclass(frozen=True)
class Mail:
    """An e-mail as it was sealed. `message_id` is made from the operation and never changes."""

    sender: str
    recipient: str
    subject: str
    text: str
    message_id: str


class MailRejectedError(ValueError):
    """The e-mail cannot be written safely: a header would break out of its line."""


@dataclass(frozen=True)
class MailServer:
    """Where mail goes: `smtp://` or `smtps://`, with user and password when they are needed.

    `timeout` is in seconds for each answer of the server.
    """

    url: str
    timeout: float

    def send(self, mail: Mail) -> None:
        """Hand the e-mail over once.

        Raises UnavailableError when nothing was sent, RefusedError when the server said no, and
        UnknownOutcomeError when the text was sent and its answer is not known.
        """
        message = _message(mail)
        try:
            server = self._connect()
        except (OSError, smtplib.SMTPException) as exc:
            raise UnavailableError("connect") from exc
        try:
            self._envelope(server, mail)
            self._text(server, message)
        finally:
            server.close()

    def _connect(self) -> smtplib.SMTP:
        parts = urlsplit(self.url)
        host = parts.hostname or "localhost"
        if parts.scheme == "smtps":
            server: smtplib.SMTP = smtplib.SMTP_SSL(
                host, parts.port or 465, timeout=self.timeout, context=ssl.create_default_context()
            )
        else:
            server = smtplib.SMTP(host, parts.port or 25, timeout=self.timeout)
        server.ehlo_or_helo_if_needed()
        if parts.username:
            if parts.scheme != "smtps":
                server.starttls(context=ssl.create_default_context())
            server.login(unquote(parts.username), unquote(parts.password or ""))
        return server

    def _envelope(self, server: smtplib.SMTP, mail: Mail) -> None:
        """Name sender and recipient. Nothing of the text has left yet."""
        try:
            for code, answer in (server.mail(mail.sender), server.rcpt(mail.recipient)):
                if code not in {250, 251}:
                    _raise_for(code, answer)
        except (OSError, smtplib.SMTPException) as exc:
            raise UnavailableError("reset") from exc

    def _text(self, server: smtplib.SMTP, message: bytes) -> None:
        try:
            code, answer = server.data(message)
        except smtplib.SMTPDataError as exc:  # refused before the text was asked for
            _raise_for(exc.smtp_code, exc.smtp_error)
        except TimeoutError as exc:
            raise UnknownOutcomeError("timeout") from exc
        except (OSError, smtplib.SMTPException) as exc:
            raise UnknownOutcomeError("reset") from exc
        reach(Point.C15)
        if code != 250:
            _raise_for(code, answer)


def _message(mail: Mail) -> bytes:
    for header in (mail.sender, mail.recipient, mail.subject, mail.message_id):
        if any(char in header for char in FORBIDDEN_IN_HEADERS):
            raise MailRejectedError("a header holds a line break")
    message = EmailMessage(policy=SMTP)
    message["From"] = mail.sender
    message["To"] = mail.recipient
    message["Subject"] = mail.subject
    message["Message-ID"] = mail.message_id
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(mail.text)
    return message.as_bytes()


def _raise_for(code: int, answer: bytes | str) -> NoReturn:
    """A server that says no for now (4xx, RFC 5321) has taken nothing and may be asked again."""
    if 400 <= code < 500:
        raise UnavailableError("error", code)
    raise RefusedError("mail_refused", _shown(answer), code)


def _shown(answer: bytes | str) -> str:
    text = answer.decode("utf-8", "replace") if isinstance(answer, bytes) else answer
    return text[:200]

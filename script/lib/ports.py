"""The neighbouring ports: web, pretend shop, pretend model, and the pretend shop's mail."""

import random
import socket
from contextlib import closing
from dataclasses import dataclass

from script.lib import processes
from script.lib.bootstrap import SetupError

HOST = "127.0.0.1"
DEFAULT = 8000
FORBIDDEN = {5432, 6379}  # where other people's PostgreSQL and Redis live


@dataclass(frozen=True)
class Ports:
    """PORT serves the product; PORT+1 the pretend shop; PORT+2 the pretend model.

    The pretend shop takes e-mails over SMTP on PORT+3.
    """

    web: int

    @property
    def shop(self) -> int:
        return self.web + 1

    @property
    def model(self) -> int:
        return self.web + 2

    @property
    def mail(self) -> int:
        return self.web + 3

    def named(self) -> dict[str, int]:
        return {"web": self.web, "shop": self.shop, "model": self.model, "mail": self.mail}


def choose(text: str) -> Ports:
    """The ports for what a person wrote as PORT; "0" takes three free neighbours.

    Raises SetupError when the text is no usable port number.
    """
    if (
        not text.isascii()
        or not text.isdigit()
        or not 0 <= int(text) <= 65532
        or 0 < int(text) < 1024
    ):
        raise SetupError(
            f"PORT must be a number from 1024 to 65532, or 0 for any free one, and is {text!r}."
        )
    return Ports(int(text)) if int(text) else find_free()


def is_free(port: int) -> bool:
    """Whether a server of ours could listen there now."""
    with closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as probe:
        # Without this, connections that were closed a moment ago would count as "taken".
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def find_free() -> Ports:
    """Free neighbouring ports, below the range from which outgoing connections take theirs."""
    for _ in range(200):
        ports = Ports(random.randrange(10000, 32000))  # noqa: S311 - no secret
        if not FORBIDDEN.intersection(ports.named().values()) and all(
            map(is_free, ports.named().values())
        ):
            return ports
    raise SetupError("found no four free neighbouring ports between 10000 and 32000.")


def find_one_free() -> int:
    """One free port on loopback, chosen by the system."""
    with closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port if port not in FORBIDDEN else find_one_free()


def require_free(needed: dict[str, int]) -> None:
    """Raise SetupError, saying which port is taken, by whom and what to do, unless all are free."""
    taken = {name: port for name, port in needed.items() if not is_free(port)}
    if not taken:
        return
    lines = []
    for name, port in taken.items():
        holder = processes.listener(port)
        lines.append(f"port {port} ({name}) is taken" + (f" by {holder}" if holder else ""))
    other = suggest()
    raise SetupError(
        "; ".join(lines) + ".\n"
        f"Stop that, or take other ports: PORT={other} script/server uses "
        f"{other} to {other + 3}."
    )


def suggest() -> int:
    """A round number whose three ports are free now."""
    for port in range(DEFAULT + 100, DEFAULT + 2000, 100):
        if all(map(is_free, Ports(port).named().values())):
            return port
    return find_free().web

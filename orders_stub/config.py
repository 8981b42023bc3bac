"""The shop's settings, read once from the command line and the environment."""

from dataclasses import dataclass
from pathlib import Path

DAY = 24 * 60 * 60


@dataclass(frozen=True)
class Config:
    """Everything that can be set. `key_window` is in seconds, `agent_url` an origin without path.

    Without a `webhook_url` nobody is told of anything. Events are signed with every secret, so that
    one can be exchanged for another.
    """

    data: Path
    agent_url: str
    client_id: str
    client_secret: str
    slug: str = "demo"
    widget_key: str = "demo"
    key_window: float = DAY
    demo: bool = True
    webhook_url: str = ""
    webhook_secrets: tuple[str, ...] = ()

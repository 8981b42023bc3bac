"""Unsafe settings stop a deployment: said by `manage.py check`, and by each process at its start."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.core.exceptions import ImproperlyConfigured

from config.safety import Finding, findings


@register(Tags.security)
def check_what_is_refused(**_: Any) -> list[CheckMessage]:
    """What no process would start with. Commands that check first are refused too."""
    return [_message(finding) for finding in refused()]


@register(Tags.security, deploy=True)
def check_as_deployment(**_: Any) -> list[CheckMessage]:
    """The rest of what is unsafe once others reach this, even if they do not yet."""
    said = refused()
    return [_message(f) for f in findings(settings, deployed=True) if f not in said]


def refused() -> list[Finding]:
    return [finding for finding in findings(settings, deployed=False) if finding.is_refused]


def refuse_unsafe(**_: Any) -> None:
    """Called by each process before its first work.

    Raises ImproperlyConfigured that lists every unsafe setting at once.
    """
    found = refused()
    if found:
        raise ImproperlyConfigured(
            "Countersign does not start with unsafe settings:\n  - "
            + "\n  - ".join(map(str, found))
            + "\n`manage.py check --deploy` says the rest; docs/deploy.md has each setting."
        )


def _message(finding: Finding) -> CheckMessage:
    kind = Error if finding.is_refused else Warning
    return kind(str(finding), id=f"countersign.{finding.id}")

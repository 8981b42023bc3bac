"""A reply while it is being written: whole sentences, each held against the facts before it is shown.

A draft is all of the reply so far, and passes the same check as a reply that is said. It is a hint
to whoever looks on: never stored, and when it is lost the reply itself still comes from the rows. A
reply that is then not said as it was drafted (calls follow, or a later sentence is not true) takes
the draft's place all the same.
"""

import re

from django.db import Error as DatabaseError

from agents import events, proofs
from agents.markdown import plain
from agents.store import Claim
from tools.outside import leave_database

MAX_DRAFTS = 60  # of one reply
# The end of a sentence in text that goes on behind it.
_END = re.compile(r"[.!?\u2026\u3002\uff01\uff1f][\"')\]]*\s|\n")


class Draft:
    """Takes a reply piece by piece and tells followers of it, sentence by sentence."""

    def __init__(self, held: Claim) -> None:
        self._held = held
        self._text = ""
        self._shown = 0
        self._left = MAX_DRAFTS
        self._proofs: proofs.Proofs | None = None

    def add(self, piece: str) -> None:
        """More of the reply. Never raises: a draft that cannot be told is not told."""
        self._text += piece
        end = _finished(self._text)
        if end <= self._shown or self._left <= 0:
            return
        self._shown = end
        self._left -= 1
        told = plain(self._text[:end], allowed_hosts=frozenset()).strip()
        if told and not self._is_fit(told):
            self._left = 0  # what is written from here on is not told
        elif told and not events.tell_draft(self._held.task, self._held.step.n, told):
            self._left = 0

    def _is_fit(self, told: str) -> bool:
        try:
            if self._proofs is None:
                self._proofs = proofs.gather(self._held.task.ticket_id)
        except DatabaseError:
            return False
        finally:
            leave_database()  # the model may take its time with the rest
        return not self._proofs.faults(told)


def _finished(text: str) -> int:
    """Where the last whole sentence ends."""
    ends = [found.end() for found in _END.finditer(text)]
    return ends[-1] if ends else 0

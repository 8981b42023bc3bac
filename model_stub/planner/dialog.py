"""Fold a transcript into the requests that are open now, in the order they were made."""

import re
from dataclasses import dataclass, field
from typing import Self

from model_stub.planner import addresses, intents, items, slots
from model_stub.planner.questions import Question, asked
from model_stub.planner.request import Request
from model_stub.planner.transcript import AssistantSaid, Transcript, UserSaid
from model_stub.planner.understand import Utterance, Wish, understand

# What is offered in answer to a request that no tool carries out as it stands.
_OFFERED_AFTER = {intents.COMPLAINT: intents.REFUND, intents.UNSUPPORTED: intents.HAND_OFF}
_DONE = re.compile(r"\bI have (?:refunded|cancelled|changed)\b")
_BACKGROUND = (intents.TRACK, intents.STATUS, intents.COMPLAINT)


@dataclass
class Dialog:
    """Where the conversation stands.

    `active` are the requests since the last finished answer, taken back ones included; `said` are
    the messages since then. Older requests are kept to be pointed back at ("no, I meant 1043").
    """

    active: list[Request] = field(default_factory=list)
    said: list[Utterance] = field(default_factory=list)
    turn_start: int = 0
    dropped: bool = False
    too_late: bool = False
    _claimed: bool = False
    _archive: list[Request] = field(default_factory=list)
    _question: Question | None = None
    _focus: str | None = None

    @classmethod
    def of(cls, transcript: Transcript) -> Self:
        """Return the dialog of a transcript."""
        dialog = cls()
        for event in transcript.events:
            if isinstance(event, UserSaid):
                dialog._hear(event.at, understand(event.text))
            elif isinstance(event, AssistantSaid) and not event.is_draft:
                dialog._answered(event)
        return dialog

    @property
    def open(self) -> list[Request]:
        """The requests still wanted."""
        return [request for request in self.active if not request.withdrawn]

    @property
    def taken_back(self) -> list[Request]:
        """The requests of this turn that the customer took back."""
        return [request for request in self.active if request.withdrawn]

    def _answered(self, event: AssistantSaid) -> None:
        self._archive += [request for request in self.active if not request.withdrawn]
        self.active, self.said = [], []
        self.dropped = self.too_late = False
        self._claimed = bool(_DONE.search(event.text))
        self.turn_start = event.at
        self._question = asked(event.text)

    def _hear(self, at: int, said: Utterance) -> None:
        self.said.append(said)
        question = self._question
        self._question = None
        if self._is_stop(said, question):
            self._stop(said)
        wanted = [wish for wish in said.wishes if not wish.refused]
        if self._only_details(wanted, question):
            wanted, said.wishes = [], []
        for wish in said.wishes:
            if wish.refused:
                self._refuse(wish)
        if wanted and not self._means_stop(wanted, question):
            for wish in wanted:
                self._wish(at, wish, said, question)
        elif not said.wishes and not said.stops:
            self._answer(at, said, question)
        if said.ids:
            self._focus = said.ids[-1]

    def _is_stop(self, said: Utterance, question: Question | None) -> bool:
        if not said.stops or any(not wish.refused for wish in said.wishes):
            return False
        return bool(self.open or question or self._archive)

    def _only_details(self, wanted: list[Wish], question: Question | None) -> bool:
        """Tell whether complaints only say why the refund under way is asked for."""
        if not wanted or any(wish.kind != intents.COMPLAINT for wish in wanted):
            return False
        if question is not None and question.kind == intents.REFUND and not question.is_offer:
            return True
        current = {r.order_id for r in self.open if r.kind == intents.REFUND}
        return bool(current) and all(set(wish.ids) <= current for wish in wanted)

    def _stop(self, said: Utterance) -> None:
        """Take back what is open, unless the message names the orders it means."""
        named = [request for request in self.open if request.order_id in said.ids]
        for request in named or self.open:
            request.withdrawn = True
        self.dropped = True
        self.too_late = self._claimed and not self.active

    def _refuse(self, wish: Wish) -> None:
        for request in self.open:
            if request.kind == wish.kind and (not wish.ids or request.order_id in wish.ids):
                request.withdrawn = True
        self.dropped = True

    def _means_stop(self, wanted: list[Wish], question: Question | None) -> bool:
        """ "Cancel it" while something else is under way takes that back; it names no order."""
        wish = wanted[0]
        if len(wanted) > 1 or wish.kind != intents.CANCEL or wish.ids or wish.with_refund:
            return False
        if "order" in wish.text.lower() or items.names_something(wish.text):
            return False
        under_way = [r for r in self.open if r.kind in (intents.REFUND, intents.ADDRESS)]
        waiting = question is not None and question.kind in (intents.REFUND, intents.ADDRESS)
        if not under_way and not (waiting and question and not question.is_offer):
            return False
        for request in under_way:
            request.withdrawn = True
        self.dropped = True
        return True

    def _wish(self, at: int, wish: Wish, said: Utterance, question: Question | None) -> None:
        """Open the requests of a wish, or let it change one that is there."""
        ids: list[str | None] = list(wish.ids) or [self._resolved(wish, question)]
        for order_id in ids:
            self._open_request(at, wish, order_id, said, question)

    def _resolved(self, wish: Wish, question: Question | None) -> str | None:
        """The order a wish without a number is about, where the conversation tells."""
        if wish.kind not in intents.NEEDS_ORDER:
            return None
        if question is not None and question.order_id is not None:
            return question.order_id
        if wish.points_back:
            return self._focus
        before = self._archive[-1] if self._archive else None
        if before is not None and before.kind in _BACKGROUND and not items.wants_lookup(wish.text):
            return before.order_id
        same = [r for r in self.open if r.kind == wish.kind and r.order_id]
        return same[-1].order_id if same else None

    def _open_request(
        self,
        at: int,
        wish: Wish,
        order_id: str | None,
        said: Utterance,
        question: Question | None,
    ) -> None:
        earlier = self._earlier(at, wish, order_id, said, question)
        request = (
            earlier.changed(at=at, text=wish.text, order_id=order_id)
            if earlier is not None
            else Request(
                wish.kind, order_id, [*self._background(wish, order_id), wish.text], since=at
            )
        )
        request.with_refund = request.with_refund or wish.with_refund
        if wish.kind == intents.ADDRESS and said.address is not None:
            request.address |= said.address
        self._replace_or_add(earlier, request)

    def _background(self, wish: Wish, order_id: str | None) -> list[str]:
        """What the customer said of the order just before, when it is now to be refunded."""
        last = self._archive[-1] if self._archive else None
        if wish.kind != intents.REFUND or order_id is None or last is None:
            return []
        return list(last.texts) if last.kind in _BACKGROUND and last.order_id == order_id else []

    def _earlier(
        self,
        at: int,
        wish: Wish,
        order_id: str | None,
        said: Utterance,
        question: Question | None,
    ) -> Request | None:
        """The request that a wish repeats, completes or corrects."""
        for request in reversed(self.open):
            if request.kind != wish.kind:
                continue
            replaces = said.corrects and not said.adds and request.since != at
            if request.order_id in (order_id, None) or replaces:
                return request
        if question is not None and question.kind == wish.kind:
            return self._asked_about(question)
        return None

    def _asked_about(self, question: Question) -> Request | None:
        for request in reversed(self._archive):
            fits = question.kind in (request.kind, _OFFERED_AFTER.get(request.kind))
            if fits and (
                None in (question.order_id, request.order_id)
                or question.order_id == request.order_id
            ):
                return Request(
                    question.kind,
                    request.order_id,
                    list(request.texts),
                    dict(request.address),
                    is_complaint=request.kind == intents.COMPLAINT,
                )
        return None

    def _replace_or_add(self, earlier: Request | None, request: Request) -> None:
        if earlier in self.active:
            at = self.active.index(earlier)
            if earlier.order_id not in (None, request.order_id):
                earlier.withdrawn = earlier.replaced = True
                self.active.insert(at + 1, request)
            else:
                self.active[at] = request
        else:
            self.active.append(request)

    def _answer(self, at: int, said: Utterance, question: Question | None) -> None:
        """Take a message that asks for nothing by itself: an answer, a detail, a correction."""
        if question is not None and self._reply(at, said, question):
            return
        target = self._target(said)
        if target is not None:
            self._amend(at, said, target)
        elif said.ids:
            for order_id in said.ids:
                self.active.append(Request(intents.STATUS, order_id, [said.text], since=at))
        elif said.asks and not (said.small_talk or said.agrees or said.thanks or said.leaves):
            self.active.append(Request(intents.POLICY, None, [said.text], since=at))

    def _reply(self, at: int, said: Utterance, question: Question) -> bool:
        """Take the answer to a question; False when the message is no answer to it."""
        earlier = self._asked_about(question) or Request(question.kind)
        earlier.order_id = earlier.order_id or question.order_id
        if said.declines:
            self.dropped = True
            return True
        if question.is_offer and not (said.says_yes or said.ids or items.is_detail(said.text)):
            return False
        if (said.thanks and not said.ids) or said.leaves or said.small_talk:
            return False
        text = self._reply_text(said, question, earlier)
        request = earlier.changed(at=at, text=text)
        if question.kind == intents.ADDRESS and earlier.order_id:
            request.address |= self._address_answer(said, earlier)
            if request.address == earlier.address and not said.agrees:
                return False
            self.active.append(request)
            return True
        orders: list[str | None] = list(said.ids) if said.ids else [earlier.order_id]
        for order_id in orders:
            self.active.append(earlier.changed(at=at, text=text, order_id=order_id))
        return True

    @staticmethod
    def _reply_text(said: Utterance, question: Question, earlier: Request) -> str:
        """The words of an answer as they would read without the question."""
        if question.wants_amount and not slots.amount(said.text):
            return f"refund {said.text}"
        if question.is_offer and said.agrees and earlier.kind == intents.REFUND and earlier.texts:
            return f"{said.text} all of it" if not earlier.is_complaint else said.text
        return said.text

    @staticmethod
    def _address_answer(said: Utterance, earlier: Request) -> addresses.Address:
        if said.address is not None:
            return said.address
        missing = tuple(
            field
            for field in addresses.missing_fields(earlier.address)
            if field not in ("name", "country")
        )
        return addresses.parse_more(said.text, missing or ("name",))

    def _target(self, said: Utterance) -> Request | None:
        """The request that a bare detail is about."""
        if said.agrees or said.declines or said.small_talk:
            return None
        current = [r for r in self.open if r.kind in intents.NEEDS_ORDER]
        detail = said.ids or items.is_detail(said.text) or slots.amount(said.text) or said.address
        if current:
            return current[-1] if detail or said.complains else None
        past = [r for r in self._archive if r.kind in intents.NEEDS_ORDER]
        if not past or not detail:
            return None
        unresolved = bool(said.ids) and past[-1].order_id is None
        return past[-1] if said.corrects or said.adds or unresolved else None

    def _amend(self, at: int, said: Utterance, target: Request) -> None:
        if said.address is not None and target.kind == intents.ADDRESS:
            target.address |= said.address
        if said.adds and said.ids:
            for added in said.ids:
                self.active.append(Request(target.kind, added, [said.text], since=at))
            return
        orders: list[str | None] = list(said.ids) if said.ids else [target.order_id]
        for order_id in orders:
            self._replace_or_add(target, target.changed(at=at, text=said.text, order_id=order_id))

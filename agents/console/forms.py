"""Shapes of what the ticket pages are asked and told."""

from django import forms
from typing_extensions import override

from agents.casework import MAX_CANNED, MAX_FLAG, MAX_NOTE
from agents.console.selectors import TicketFilter
from agents.models import Speaker, TicketStatus
from agents.services import MAX_MESSAGE
from approvals.forms import ANY, NarrowingForm


class TicketFilterForm(NarrowingForm):
    """The filter in the address of the ticket list."""

    status = forms.ChoiceField(choices=ANY + TicketStatus.choices, required=False)
    speaker = forms.ChoiceField(
        choices=ANY + Speaker.choices, required=False, label="Spoken for by"
    )
    review = forms.BooleanField(required=False, label="Only flagged for review")

    def filter_for(self, currency: str) -> TicketFilter:
        """What is asked for, with amounts in minor units of this currency. Only after is_valid()."""
        given = self.cleaned_data
        return TicketFilter(
            status=given["status"],
            speaker=given["speaker"],
            only_for_review=given["review"],
            **self.narrowed(currency),
        )

    @property
    @override
    def narrows_more(self) -> bool:
        return super().narrows_more or bool(self["review"].value())


class ReplyForm(forms.Form):
    """What a member of staff says to the customer."""

    text = forms.CharField(max_length=MAX_MESSAGE)


class NoteForm(forms.Form):
    """What staff tell each other."""

    text = forms.CharField(max_length=MAX_NOTE)


class FlagForm(forms.Form):
    """Why a task is to be looked at again; or what came of that."""

    text = forms.CharField(max_length=MAX_FLAG)


class CannedForm(forms.Form):
    """A ready-made answer. Without `reply` it is a new one."""

    shop = forms.IntegerField(min_value=1, max_value=2**63 - 1, required=False)
    reply = forms.IntegerField(min_value=1, max_value=2**63 - 1, required=False)
    name = forms.CharField(max_length=80)
    text = forms.CharField(max_length=MAX_CANNED)

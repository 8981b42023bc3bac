"""Shapes of what the ticket pages are asked and told."""

from django import forms

from agents.models import Speaker, TicketStatus
from agents.services import MAX_MESSAGE

ANY = [("", "Any")]


class TicketFilterForm(forms.Form):
    """The filter in the address of the ticket list."""

    q = forms.CharField(max_length=120, required=False, label="Search")
    status = forms.ChoiceField(choices=ANY + TicketStatus.choices, required=False)
    speaker = forms.ChoiceField(
        choices=ANY + Speaker.choices, required=False, label="Spoken for by"
    )


class ReplyForm(forms.Form):
    """What a member of staff says to the customer."""

    text = forms.CharField(max_length=MAX_MESSAGE)

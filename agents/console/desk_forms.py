"""The shapes of what is said at the desk."""

from django import forms

from tools.models import State
from tools.reversals import MAX_NOTE
from tools.settlement import MAX_EVIDENCE


class SettleForm(forms.Form):
    """How an operation ended, and how one knows."""

    outcome = forms.ChoiceField(
        choices=[(State.SUCCEEDED.value, "It happened"), (State.FAILED.value, "It did not happen")]
    )
    reference = forms.CharField(max_length=120, required=False)
    evidence = forms.CharField(max_length=MAX_EVIDENCE)
    password = forms.CharField(max_length=500, required=False, strip=False)
    code = forms.CharField(max_length=100, required=False)


class ConfirmForm(forms.Form):
    """The second person's yes to one settlement."""

    settlement = forms.IntegerField(min_value=1, max_value=2**63 - 1)
    password = forms.CharField(max_length=500, required=False, strip=False)
    code = forms.CharField(max_length=100, required=False)


class TurnDownForm(forms.Form):
    """No to one settlement, and why."""

    settlement = forms.IntegerField(min_value=1, max_value=2**63 - 1)
    reason = forms.CharField(max_length=500)


class CloseCaseForm(forms.Form):
    """What was done about money that came back."""

    note = forms.CharField(max_length=MAX_NOTE)

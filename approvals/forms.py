"""The shape of a decision made in the console."""

from django import forms

APPROVE, REJECT = "approve", "reject"


class DecisionForm(forms.Form):
    """One of two words, for one digest. Nothing else counts as a decision."""

    decision = forms.ChoiceField(choices=[(APPROVE, "Approve"), (REJECT, "Reject")])
    digest = forms.RegexField(r"^[0-9a-f]{64}$")
    decision_id = forms.RegexField(r"^[0-9a-f-]{36}$")
    reason = forms.CharField(max_length=500, required=False)
    password = forms.CharField(max_length=500, required=False, strip=False)

    @property
    def is_yes(self) -> bool:
        return bool(self.cleaned_data["decision"] == APPROVE)

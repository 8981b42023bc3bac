"""The shape of a switch being set in the console."""

from django import forms

from tools import registry
from tools.switches import MAX_REASON

OFF, ON = "off", "on"
EVERY_SHOP = "every"


class SwitchForm(forms.Form):
    """Which switch, which way, and why. Whose shops it may name is the view's business."""

    turn = forms.ChoiceField(choices=[(OFF, "Switch off"), (ON, "Switch on again")])
    shop = forms.RegexField(r"^(every|[0-9]{1,18})$")
    tool = forms.ChoiceField(
        choices=[("", "Every tool"), *((name, name) for name in registry.TOOLS)], required=False
    )
    reason = forms.CharField(max_length=MAX_REASON)

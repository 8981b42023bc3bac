"""What a step needs of the worker that runs it, so that versions of this code work side by side.

Whoever plans a step notes what it takes: the kind of step, the tool, the workflow and the prompt that
it knows. A worker claims only what it is able to; the rest stays as it is, for a worker of the other
version. What nobody knows (a tool that the model made up) is not needed, and is refused as ever.
"""

from functools import cache

from agents import prompts, workflows
from agents.models import StepKind
from tools.registry import TOOLS


def needed(*, kind: str, tool: str = "", workflow: str = "", prompt: str = "") -> str:
    """What a step of ours needs, as `agents_step.needs` keeps it: words with a blank between them."""
    words = [f"kind:{kind}", f"tool:{tool}", f"workflow:{workflow}", f"prompt:{prompt}"]
    return " ".join(word for word in words if word in _known())


def ours() -> list[str]:
    """All that this code is able to do."""
    return sorted(_known())


@cache
def _known() -> frozenset[str]:
    return frozenset(
        [f"kind:{kind}" for kind in StepKind.values]
        + [f"tool:{name}" for name in TOOLS]
        + [f"workflow:{name}" for name in workflows.NAMES]
        + [f"prompt:{version}" for version in prompts.released("support")]
    )

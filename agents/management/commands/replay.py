"""Try another prompt or model on saved tasks. Nothing is looked up or sent, and nothing written unless asked."""

import json
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from typing_extensions import override

from agents import llm, prompts, replay
from agents.models import Task
from agents.services import replays


class Command(BaseCommand):
    help = (
        "Runs saved tasks again with another prompt version or model, answering every tool call from "
        "the task's own log, and compares what would be done with what was. Exit 1 when one differs."
    )

    @override
    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("tasks", nargs="+", type=int, help="the tasks' numbers")
        parser.add_argument(
            "--prompt", default="", help="a released prompt version (default: current)"
        )
        parser.add_argument("--model", default=settings.MODEL, help="default: the configured one")
        parser.add_argument(
            "--keep",
            action="store_true",
            help="show the comparison on the task's page in the console",
        )
        parser.add_argument("--json", action="store_true", help="one JSON object a task")

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        version = options["prompt"] or prompts.current("support")
        candidate = {"prompt_version": version, "model": options["model"]}
        verdicts = [self._verdict(task_id, **candidate) for task_id in options["tasks"]]
        if options["keep"]:
            self._keep(verdicts, **candidate)
        for verdict in verdicts:
            self.stdout.write(_as_json(verdict) if options["json"] else _as_text(verdict))
        same = sum(verdict.is_same for verdict in verdicts)
        if not options["json"]:
            self.stdout.write(f"{same} of {len(verdicts)} the same (prompt {version})")
        if same < len(verdicts):
            raise SystemExit(1)

    def _keep(self, verdicts: list[replay.Verdict], **candidate: str) -> None:
        try:
            for verdict in verdicts:
                replays.keep(verdict, **candidate, now=timezone.now())
        except replay.NotReplayableError as exc:
            raise CommandError(f"{exc}") from exc

    def _verdict(self, task_id: int, **candidate: str) -> replay.Verdict:
        try:
            return replay.compare(task_id, **candidate)
        except Task.DoesNotExist as exc:
            raise CommandError(f"There is no task {task_id}") from exc
        except (
            replay.NotReplayableError,
            prompts.PromptError,
            llm.ModelUnavailableError,
            llm.ModelRefusedError,
        ) as exc:
            raise CommandError(f"{exc}") from exc


def _as_json(verdict: replay.Verdict) -> str:
    return json.dumps(
        {
            "task": verdict.task_id,
            "same": verdict.is_same,
            "then": verdict.then.as_json(),
            "now": verdict.now.as_json(),
        }
    )


def _as_text(verdict: replay.Verdict) -> str:
    lines = [f"task {verdict.task_id}: {'the same' if verdict.is_same else 'DIFFERENT'}"]
    for name, outcome in (("then", verdict.then), ("now", verdict.now)):
        tokens = "unknown" if outcome.tokens is None else f"{outcome.tokens:,}"
        lines.append(f"  {name}: {outcome.end}, {outcome.steps} steps, {tokens} tokens")
        lines += [f"    {call.tool} {call.arguments}" for call in outcome.changes]
        if outcome.left_at is not None:
            lines.append(
                f"    the log cannot answer {outcome.left_at.tool} {outcome.left_at.arguments}"
            )
    return "\n".join(lines)

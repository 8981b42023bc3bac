"""The main job in a terminal: say what you need, watch the steps, countersign, read the answer."""

import argparse
import json
import select
import sys
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

import httpx

from script.lib.bootstrap import SetupError
from script.lib.record import Record
from script.lib.running import ensure_server

EXIT_BY_STATUS = {"succeeded": 0, "handed_off": 3, "failed": 4, "cancelled": 4}
EXIT_REFUSED = 2
EXIT_USAGE = 64
EXIT_UNAVAILABLE = 69
LOOK_EVERY = 0.25  # seconds
ANOTHER = "a yes from another member of staff"
# Two different people, for a refund above a second limit.
STAFF = {"staff": "staff", "second_staff": "staff2"}
PASSWORD = "countersign-demo"  # noqa: S105 - of the demo, printed by script/server
ENDED = frozenset(EXIT_BY_STATUS)


class ChatError(Exception):
    """Something between this terminal and the agent failed; the text says what."""


@dataclass
class Options:
    message: str
    customer: str
    answers: dict[str, str | None]
    is_json: bool


def main(words: list[str]) -> int:
    """Run one conversation turn; see `script/chat --help` for the exit codes."""
    options = _parse(words)
    try:
        with ensure_server() as server:
            return Conversation(server, options).run()
    except (SetupError, ChatError) as exc:
        print(f"script/chat: {exc}", file=sys.stderr)
    except httpx.HTTPError as exc:
        print(f"script/chat: the server cannot be reached ({exc}).", file=sys.stderr)
    except KeyboardInterrupt:
        print("\nscript/chat: left; the task goes on without this terminal.", file=sys.stderr)
        return 130
    return EXIT_UNAVAILABLE


def _parse(words: list[str]) -> Options:
    parser = argparse.ArgumentParser(
        prog="script/chat",
        description=__doc__,
        epilog=(
            "Exit status: 0 the task succeeded, 2 what was asked was refused, 3 handed to a "
            "person, 4 failed or cancelled."
        ),
    )
    parser.add_argument("message", help='what to ask, like "Please refund order 1042"')
    parser.add_argument("--as", dest="customer", default="ada", help="the customer (ada, bob, …)")
    yes_or_no = parser.add_mutually_exclusive_group()
    yes_or_no.add_argument("--yes", dest="customer_says", action="store_const", const="yes")
    yes_or_no.add_argument("--no", dest="customer_says", action="store_const", const="no")
    staff = parser.add_mutually_exclusive_group()
    staff.add_argument("--staff-yes", dest="staff_says", action="store_const", const="yes")
    staff.add_argument("--staff-no", dest="staff_says", action="store_const", const="no")
    parser.add_argument("--json", dest="is_json", action="store_true", help="end with JSON")
    given = parser.parse_args(words)
    return Options(
        message=given.message,
        customer=given.customer,
        answers={"customer": given.customer_says, "staff": given.staff_says},
        is_json=given.is_json,
    )


@dataclass
class Conversation:
    """One message and what comes of it."""

    server: Record
    options: Options
    shown: set[tuple[int, str]] = field(default_factory=set)
    asked: set[str] = field(default_factory=set)
    can_ask: bool = True

    def run(self) -> int:
        with httpx.Client(base_url=self.server.urls["web"], timeout=30) as client:
            client.headers["Authorization"] = f"Bearer {self._identity()}"
            task = self._start(client)
            while task["status"] not in ENDED:
                self._show_steps(task)
                self._countersign(client, task)
                time.sleep(LOOK_EVERY)
                task = self._look(client, task["id"])
            self._show_steps(task)
        return self._end(task)

    def _identity(self) -> str:
        """Sign in at the shop as its customer and take the identity that it hands its widget."""
        with httpx.Client(base_url=self.server.urls["shop"], timeout=10) as shop:
            signed_in = shop.post("/sign-in", json={"customer": self.options.customer})
            if signed_in.status_code >= 400:
                raise ChatError(f"the shop has no customer {self.options.customer!r} to sign in.")
            return str(shop.get("/identity").raise_for_status().json()["token"])

    def _start(self, client: httpx.Client) -> dict[str, Any]:
        answer = client.post(
            "/v1/tasks",
            json={"message": self.options.message, "ticket": "new"},
            headers={"Idempotency-Key": f'"{uuid.uuid4()}"'},
        )
        task = _body(answer)
        self._say(f"{self.options.customer}: {self.options.message}")
        return task

    def _look(self, client: httpx.Client, task_id: int) -> dict[str, Any]:
        answer = client.get(f"/v1/tasks/{task_id}")
        if answer.status_code == 401:  # the identity is short-lived, a wait for staff may not be
            client.headers["Authorization"] = f"Bearer {self._identity()}"
            answer = client.get(f"/v1/tasks/{task_id}")
        return _body(answer)

    def _show_steps(self, task: dict[str, Any]) -> None:
        for step in task["steps"]:
            mark = (step["n"], step["status"])
            if step["status"] == "planned" or mark in self.shown:
                continue
            self.shown.add(mark)
            what = f" {step['tool']}" if step["tool"] else ""
            about = f" order {step['order_id']}" if step["order_id"] else ""
            judged = f"  [{step['verdict']}]" if step["verdict"] else ""
            came = f"  → {step['outcome']}" if step["outcome"] else f"  … {step['status']}"
            self._say(f"  step {step['n']}: {step['kind']}{what}{about}{judged}{came}")

    def _countersign(self, client: httpx.Client, task: dict[str, Any]) -> None:
        action = task.get("action")
        if action is None or action["approval"] in self.asked:
            return
        answer = self.options.answers[_side(action["role"])]
        if answer is None and not self.can_ask:
            return
        if action["approval"] not in self.shown_cards:
            self._show_card(action)
        answer = answer or self._prompt(action["role"])
        if answer is None:
            return
        self.asked.add(action["approval"])
        self._decide(client, task["id"], action, answer)

    @property
    def shown_cards(self) -> set[str]:
        return {approval for n, approval in self.shown if n < 0}

    def _show_card(self, action: dict[str, Any]) -> None:
        self.shown.add((-1, action["approval"]))
        self._say(f"\n  ┌ {action['title']}")
        for line in action["lines"]:
            self._say(f"  │ {line}")
        for name in ("from", "to"):
            if action[name]:
                self._say(f"  │ {name}: {', '.join(action[name])}")
        if action["reason"]:
            self._say(f"  │ reason: {action['reason']}")
        self._say(f"  └ until {action['expires_at'][:16].replace('T', ' ')} UTC\n")

    def _prompt(self, role: str) -> str | None:
        """Ask at the terminal; None when nobody answers there in this moment."""
        if (-2, role) not in self.shown:
            self.shown.add((-2, role))
            whose = {"customer": "your yes", "staff": "a yes from staff"}.get(role, ANOTHER)
            self._say(f"  This needs {whose}. Type yes or no (or decide it in the browser): ")
        if not select.select([sys.stdin], [], [], LOOK_EVERY)[0]:
            return None
        typed = sys.stdin.readline()
        if not typed:
            self.can_ask = False
            self._say("  Nobody is at this terminal: waiting for the decision in the browser.")
            return None
        word = typed.strip().lower()
        return {"y": "yes", "yes": "yes", "n": "no", "no": "no"}.get(word)

    def _decide(
        self, client: httpx.Client, task_id: int, action: dict[str, Any], answer: str
    ) -> None:
        path = f"/v1/tasks/{task_id}/approvals/{action['step']}"
        body = {"decision": answer, "digest": action["digest"]}
        if action["role"] == "customer":
            decided = client.post(path, json=body)
        else:
            if answer == "no":
                body["reason"] = "Declined from the terminal."
            decided = self._as_staff(STAFF[action["role"]], path, body)
        if decided.status_code >= 400:
            self._say(f"  The decision was not taken: {decided.json().get('detail', '')}")
        else:
            who = "another member of staff" if action["role"] == "second_staff" else action["role"]
            self._say(f"  {who} says {answer}")

    def _as_staff(self, name: str, path: str, body: dict[str, str]) -> httpx.Response:
        """Decide in a session of the console, as a member of staff would."""
        base = self.server.urls["web"]
        with httpx.Client(base_url=base, timeout=30, follow_redirects=True) as console:
            console.headers["Referer"] = console.headers["Origin"] = base
            console.get("/console/login/").raise_for_status()
            console.post(
                "/console/login/",
                data={
                    "username": name,
                    "password": PASSWORD,
                    "csrfmiddlewaretoken": console.cookies["countersign_csrf"],
                },
            ).raise_for_status()
            if "countersign_session" not in console.cookies:
                raise ChatError("the demo's member of staff could not sign in to the console.")
            headers = {"X-CSRFToken": console.cookies["countersign_csrf"]}
            return console.post(path, json=body, headers=headers)

    def _end(self, task: dict[str, Any]) -> int:
        self._say(f"\nagent: {task['reply']}")
        if self.options.is_json:
            print(json.dumps(_result(task), ensure_ascii=False))
        if task["status"] == "succeeded" and task["outcome"] == "refused":
            return EXIT_REFUSED
        return EXIT_BY_STATUS[task["status"]]

    def _say(self, text: str) -> None:
        print(text, flush=True)


def _side(role: str) -> str:
    """Whose answer of the options it is: both of staff have the same."""
    return "customer" if role == "customer" else "staff"


def _result(task: dict[str, Any]) -> dict[str, Any]:
    """The one object that `--json` ends with."""
    return {
        "task": task["id"],
        "status": task["status"],
        "outcome": task["outcome"],
        "reason": task["reason"],
        "reply": task["reply"],
        "steps": task["steps"],
        "model_calls": task["model_calls"],
        "tokens": task["tokens"],
        "operations": task["operations"],
    }


def _body(answer: httpx.Response) -> dict[str, Any]:
    """The JSON of a good answer. Raises ChatError with the problem's own words otherwise."""
    try:
        body = answer.json()
    except ValueError:
        body = {}
    if answer.status_code >= 400 or "id" not in body:
        said = body.get("detail") or body.get("title") or answer.reason_phrase
        raise ChatError(f"the agent answered {answer.status_code}: {said}")
    return dict(body)

"""The next reply: one tool call, or an answer in plain text."""

import json
from typing import Any

from model_stub.planner import intents, phrase, schema
from model_stub.planner.dialog import Dialog
from model_stub.planner.facts import Facts
from model_stub.planner.narrate import narrate
from model_stub.planner.steps import Ask, Call, Desk, done_for_withdrawn, next_step
from model_stub.planner.transcript import Transcript, read
from model_stub.replies import Reply, ToolCall
from model_stub.toolspec import tool_names
from model_stub.wire import ChatRequest

_LAST = (intents.CLOSE, intents.HAND_OFF)


def plan_reply(chat: ChatRequest) -> Reply:
    """Return the model's reply to a request. The same request always gets the same one."""
    transcript = read(chat.messages)
    dialog = Dialog.of(transcript)
    facts = Facts([call for call in transcript.calls if call.at > dialog.turn_start])
    mode = chat.tool_choice.mode
    if mode == "none":
        return Reply(content=_words_only(transcript, dialog, facts, chat))
    action = _next_action(transcript, dialog, Desk(facts, frozenset(tool_names(chat.tools))))
    if mode == "named" and (isinstance(action, str) or action.name != chat.tool_choice.name):
        action = _forced(str(chat.tool_choice.name), chat, dialog)
    elif mode == "required" and isinstance(action, str):
        action = _forced(_fallback_tool(chat), chat, dialog)
    if isinstance(action, str):
        return Reply(content=action)
    tool = next(tool for tool in chat.tools if tool["function"]["name"] == action.name)
    return Reply(tool_calls=(ToolCall(action.name, json.dumps(schema.conform(action.args, tool))),))


def _next_action(transcript: Transcript, dialog: Dialog, desk: Desk) -> Call | str:
    """Return the next call or the answer; told of a loop, hand off rather than go round again."""
    action = _wanted_action(transcript, dialog, desk)
    repeats = isinstance(action, Call) and any(
        call.name == action.name and _given(call.args) == action.args for call in desk.facts.calls
    )
    if repeats and transcript.notices and "hand_off" in desk.offered:
        return Call("hand_off", {"reason": "The same call gave the same result again."})
    return action


def _wanted_action(transcript: Transcript, dialog: Dialog, desk: Desk) -> Call | str:
    """Return the next call of the first request that needs one, else the whole answer."""
    told: list[str] = []
    questions: list[str] = []
    for request in dialog.taken_back:
        done = done_for_withdrawn(request, desk)
        if done is not None:
            told.append(done.text)
    for request in sorted(dialog.open, key=lambda request: request.kind in _LAST):
        if request.kind == intents.CLOSE and questions:
            continue
        step = next_step(request, desk)
        if isinstance(step, Call):
            return step
        (questions if isinstance(step, Ask) else told).append(step.text)
    return phrase.compose(dialog, told, questions, transcript.first_name)


def _given(args: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments without the nulls that a strict schema asks for."""
    return {name: value for name, value in args.items() if value is not None}


def _words_only(transcript: Transcript, dialog: Dialog, facts: Facts, chat: ChatRequest) -> str:
    """Phrase what code has found; without any result, answer as far as talk alone goes."""
    if not facts.calls:
        answer = _next_action(transcript, dialog, Desk(facts, frozenset()))
        return (
            answer if isinstance(answer, str) else phrase.small_talk(dialog, transcript.first_name)
        )
    said = narrate(facts, chat.last_user_text)
    return phrase.compose(dialog, said, [], transcript.first_name)


def _fallback_tool(chat: ChatRequest) -> str:
    """The tool to call when one must be called and none is needed: the most harmless there is."""
    names = tool_names(chat.tools)
    return next((name for name in ("find_orders", "search_policy") if name in names), names[0])


def _forced(name: str, chat: ChatRequest, dialog: Dialog) -> Call:
    """Return a call of the tool the caller insists on, with what is known for its arguments."""
    parameters = next(t["function"] for t in chat.tools if t["function"]["name"] == name).get(
        "parameters"
    )
    ids = [request.order_id for request in dialog.open if request.order_id]
    said = [order_id for utterance in dialog.said for order_id in utterance.ids]
    known = ids or said
    text = chat.last_user_text[:300]
    hints: dict[str, Any] = {"question": text, "resolution": text, "reason": text}
    if known:
        hints["order_id"] = known[-1]
    root = parameters or {}
    properties = root.get("properties") or {}
    hints = {k: v for k, v in hints.items() if not (properties.get(k) or {}).get("enum")}
    args = schema.example({"type": "object", **root}, root, hints)
    if known and "order_id" in properties:
        args["order_id"] = known[-1]
    return Call(name, args)

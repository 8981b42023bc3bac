/* The pieces of a conversation: bubbles, progress, the card that asks, the receipt. */

import { el, icon } from "./dom.js";
import { clock, moment, t } from "./strings.js";
import { actionState, nowText, receiptTitle, stepText } from "./words.js";

function authorOf(message) {
  if (message.author === "customer") return t("you");
  if (message.author === "staff") return message.author_name || t("colleague");
  return t("assistant");
}

export function messageItem(message) {
  const author = authorOf(message);
  return el(
    "div",
    { class: "said", data: { author: message.author } },
    el("p", { class: "by" }, el("span", { class: "name", text: author }), " ",
      el("time", { datetime: message.at, text: clock(message.at) })),
    el("p", { class: "bubble", dir: "auto", text: message.text }),
  );
}

/* A reply that is being written. It is read out once it is said, and not before. */
export function draftItem(draft) {
  return el("div", { class: "said is-draft", "aria-hidden": "true", data: { author: "agent" } },
    el("p", { class: "by" }, el("span", { class: "name", text: t("assistant") })),
    el("p", { class: "bubble", dir: "auto", text: draft.text }));
}

/* A message of ours that the service has not taken yet. */
export function outgoingItem(sent, onRetry) {
  const state = sent.problem
    ? el("p", { class: "fate is-bad" }, `${t("notSent")} ${sent.problem} `,
        el("button", { class: "link", type: "button", text: t("retry"), on: { click: () => onRetry(sent.id) } }))
    : el("p", { class: "fate", text: t("sending") });
  return el(
    "div",
    { class: "said is-pending", data: { author: "customer" } },
    el("p", { class: "by" }, el("span", { class: "name", text: t("you") })),
    el("p", { class: "bubble", dir: "auto", text: sent.text }),
    state,
  );
}

/* The steps of a task: open while it runs, folded away once it has ended. */
export function progressItem(task, steps, actionOf, isUnfolded) {
  const shown = steps.filter(isWorthTelling);
  const list = el("ul", { class: "steps" }, ...shown.map((step) => stepItem(step, actionOf(step))));
  if (!task.is_live) {
    if (!shown.some((step) => step.kind === "tool")) return el("div", { hidden: true });
    return el("details", { class: "progress", open: isUnfolded },
      el("summary", { text: t("doneSteps", { count: shown.length }) }), list);
  }
  const now = nowText(task, steps, actionOf);
  const isWaiting = ["customer", "staff"].includes(task.waits_for);
  return el("div", { class: "progress is-live", "aria-live": "off" },
    shown.length ? list : null,
    el("p", { class: isWaiting ? "now is-waiting" : "now" },
      isWaiting ? icon("clock") : el("span", { class: "dots", "aria-hidden": "true" }, el("i"), el("i"), el("i")),
      el("span", { text: now })));
}

/* A call to hand off is told of by the hand-off itself. */
function isWorthTelling(step) {
  return step.status === "finished" && step.kind !== "model" && !(step.kind === "tool" && step.tool === "hand_off");
}

function stepItem(step, action) {
  const isDone = ["ok", "succeeded", ""].includes(step.outcome) || step.kind === "hand_off";
  return el("li", { data: { tone: isDone ? "good" : "calm" } },
    icon(isDone ? "check" : "cross"), el("span", { text: stepText(step, action) }));
}

/* Exactly what would be done, and the two answers. */
export function actionItem(action, answer, onDecide) {
  const id = `action-${action.task}-${action.step}`;
  const state = actionState(action);
  const card = el("section", { class: "card action", "aria-labelledby": id, data: { tone: state ? state.tone : "ask" } },
    el("p", { class: "eyebrow", text: state ? "" : t("pleaseConfirm"), hidden: Boolean(state) }),
    el("h2", { id, dir: "auto", text: action.title }),
    action.lines.length
      ? el("ul", { class: "lines" }, ...action.lines.map((line) => el("li", { dir: "auto", text: line })))
      : null,
    fromTo(action),
    action.reason ? facts([[t("reason"), action.reason]]) : null);
  if (state) card.append(outcome(state), ...takeBack(action, answer, onDecide));
  else card.append(...question(action, answer, onDecide));
  return card;
}

function fromTo(action) {
  if (!action.from.length && !action.to.length) return null;
  const block = (label, lines) => lines.length
    ? el("div", {}, el("dt", { text: label }), ...lines.map((line) => el("dd", { dir: "auto", text: line })))
    : null;
  const isMove = action.from.length > 0;
  return el("dl", { class: isMove ? "move" : "move is-single" },
    block(t("from"), action.from), block(isMove ? t("to") : "", action.to));
}

function facts(pairs) {
  return el("dl", { class: "facts" },
    ...pairs.map(([name, value]) => el("div", {}, el("dt", { text: name }), el("dd", { dir: "auto", text: value }))));
}

function question(action, answer, onDecide) {
  const isBusy = Boolean(answer && !answer.problem);
  const button = (decision, className) => el("button", {
    class: className, type: "button", disabled: isBusy, text: t(decision),
    "aria-label": `${t(decision)}: ${action.title}`,
    data: { decision },
    on: { click: () => onDecide(action, decision) },
  });
  return [
    action.also_staff ? el("p", { class: "chip" }, icon("people"), el("span", { text: t("alsoStaff") })) : null,
    el("div", { class: "answers" }, button("yes", "yes"), button("no", "no")),
    el("p", { class: "small", text: isBusy ? t("answering") : `${t("nothingYet")} ${t("answerBy", { time: moment(action.expires_at) })}.` }),
    answer && answer.problem ? el("p", { class: "fate is-bad", role: "alert", text: answer.problem }) : null,
  ].filter(Boolean);
}

function outcome(state) {
  const sign = { good: "check", bad: "cross", calm: "cross", wait: "clock" }[state.tone];
  return el("p", { class: "outcome", data: { tone: state.tone } }, icon(sign),
    el("span", {}, el("span", { text: state.text }),
      state.detail ? el("span", { class: "quote", dir: "auto", text: state.detail }) : null));
}

/* A yes may be taken back for as long as nothing is being sent. */
function takeBack(action, answer, onDecide) {
  if (action.state !== "awaiting_approval" || action.status !== "approved") return [];
  const isBusy = Boolean(answer && !answer.problem);
  return [
    el("button", { class: "link", type: "button", disabled: isBusy, text: t("takeBack"),
      data: { decision: "take-back" }, on: { click: () => onDecide(action, "no") } }),
    answer && answer.problem ? el("p", { class: "fate is-bad", role: "alert", text: answer.problem }) : null,
  ].filter(Boolean);
}

/* What truly happened, with its reference, under what had been agreed to. */
export function receiptItem(receipt, action) {
  const id = `receipt-${receipt.task}-${receipt.step}`;
  const pairs = [
    [t("order"), receipt.order_id],
    [t("amount"), receipt.amount_text],
    [t("reference"), receipt.reference],
    [t("when"), receipt.at ? moment(receipt.at) : ""],
  ].filter(([, value]) => value);
  return el("section", { class: "card receipt", "aria-labelledby": id },
    el("h2", { id }, icon("check"), el("span", { text: receiptTitle(receipt) })),
    action && action.lines.length
      ? el("ul", { class: "lines" }, ...action.lines.map((line) => el("li", { dir: "auto", text: line })))
      : null,
    action && receipt.kind === "change_address" ? fromTo(action) : null,
    facts(pairs));
}

export function ticketItem(ticket, isCurrent, onOpen) {
  return el("li", {},
    el("button", { class: "ticket", type: "button", "aria-current": isCurrent ? "true" : null, on: { click: () => onOpen(ticket.id) } },
      el("span", { class: "subject", dir: "auto", text: ticket.subject }),
      el("span", { class: "small", text: `${moment(ticket.updated_at)} · ${t(ticket.status === "closed" ? "closed" : "open")}` })));
}

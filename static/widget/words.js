/* What steps and actions are called, in words. */

import { has, t } from "./strings.js";

/* A step in one line. While it runs it says what is being done, then what was done. */
export function stepText(step, action) {
  if (step.kind === "model") return t("thinking");
  const name = step.kind === "hand_off" ? "hand_off" : has(step.tool) ? step.tool : "other";
  const order = step.about || step.order_id;
  const about = order && has(`${name}_about`) ? "_about" : "";
  if (step.status !== "finished") return turnText(action) || t(name + about, { order });
  const done = t(`${name}${about}_done`, { order });
  const note = noteOf(step);
  return note ? `${done}: ${note}` : done;
}

function noteOf(step) {
  if (["", "ok", "succeeded"].includes(step.outcome)) return "";
  if (step.outcome === "not_found") return t("stepNotFound");
  return step.kind === "hand_off" ? "" : t("stepNotDone");
}

/* Whose turn it is with an action, or "" when it is nobody's. */
export function turnText(action) {
  if (!action) return "";
  if (action.state === "awaiting_approval") {
    return t(action.status === "open" ? "waitsForYou" : "waitsForStaff");
  }
  if (action.state === "approved" || action.state === "sending") return t("beingSent");
  if (action.state === "unknown") return t("waitsForShop");
  if (action.state === "needs_person") return t("needsPerson");
  return "";
}

/* How an action that is no longer a question stands, with a tone for its look. */
export function actionState(action) {
  const said = action.status === "approved" ? t("saidYes") : "";
  switch (action.state) {
    case "awaiting_approval":
      return action.status === "open" ? null : { tone: "wait", text: `${said}. ${t("waitsForStaff")}.` };
    case "approved":
    case "sending":
    case "unknown":
    case "needs_person":
      return { tone: "wait", text: turnText(action) };
    case "succeeded":
      return { tone: "good", text: t("done") };
    case "rejected":
      return action.decided_by === "staff"
        ? { tone: "bad", text: t("staffSaidNo"), detail: action.answer }
        : { tone: "calm", text: t("saidNo") };
    case "failed":
      return action.is_already_done
        ? { tone: "calm", text: t(action.kind === "cancel" ? "alreadyCancelled" : "nothingLeft") }
        : { tone: "bad", text: t("shopRefused") };
    case "expired":
      return { tone: "calm", text: t("expired") };
    case "superseded":
      return { tone: "calm", text: t("superseded") };
    default:
      return { tone: "calm", text: t("withdrawn") };
  }
}

/* What is going on in a live task, in one line. */
export function nowText(task, steps, actionOf) {
  if (task.is_stopping) return t("stopping");
  if (task.waits_for === "customer") return t("waitsForYou");
  if (task.waits_for === "staff") return t("waitsForStaff");
  if (task.waits_for === "shop") return t("waitsForShop");
  if (task.waits_for === "model") return t("waitsForModel");
  const step = steps.at(-1);
  return step && step.status !== "finished" ? stepText(step, actionOf(step)) : t("thinking");
}

export function receiptTitle(receipt) {
  const name = receipt.pending ? "receipt_pending" : `receipt_${receipt.kind}`;
  return t(has(name) ? name : "receipt_other");
}

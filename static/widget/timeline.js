/* The conversation on the page: each item once, in its order, redrawn only when it looks different. */

import { actionItem, draftItem, messageItem, outgoingItem, progressItem, receiptItem } from "./cards.js";

const ORDER = { action: 0, receipt: 1, progress: 2, message: 3, draft: 4, out: 5 };
const LATER = Number.MAX_SAFE_INTEGER;
const NEAR_END = 80;

export class Timeline {
  constructor({ list, scroller, latest, store, onDecide, onRetry }) {
    Object.assign(this, { list, scroller, latest, store, onDecide, onRetry });
    this.drawn = new Map();
    this.sticks = true; // to the end, until somebody scrolls back
    this.scroller.addEventListener("scroll", () => {
      this.sticks = this.isAtEnd();
      if (this.sticks) this.hideLatest();
    });
    // The composer grows, a keyboard comes up: what was the end stays in view.
    new ResizeObserver(() => this.sticks && this.toEnd()).observe(this.scroller);
    this.latest.addEventListener("click", () => this.toEnd());
  }

  /* Draw what is known. `isHistory`: nothing of it is news, so nothing is read out. */
  draw({ isHistory = false } = {}) {
    const { sticks } = this;
    if (isHistory) this.list.setAttribute("aria-live", "off");
    const items = this.items();
    const keys = new Set(items.map((item) => item.key));
    for (const [key, known] of this.drawn) {
      if (!keys.has(key)) this.remove(key, known.element);
    }
    const before = this.list.childElementCount;
    items.forEach((item, index) => this.place(item, index));
    if (isHistory || sticks) this.toEnd();
    else if (this.list.childElementCount > before) this.latest.hidden = false;
    // Only what comes from now on is read out.
    requestAnimationFrame(() => this.list.setAttribute("aria-live", "polite"));
  }

  clear() {
    this.drawn.clear();
    this.list.replaceChildren();
    this.list.setAttribute("aria-live", "off");
    this.hideLatest();
  }

  place(item, index) {
    let known = this.drawn.get(item.key);
    const look = JSON.stringify(item.look);
    if (!known || known.look !== look) {
      const element = item.make();
      if (known) this.swap(known.element, element);
      known = { look, element };
      this.drawn.set(item.key, known);
    }
    const there = this.list.children[index];
    if (there !== known.element) this.list.insertBefore(known.element, there || null);
  }

  /* The focus of what goes stays with the conversation, not with the page's beginning. */
  remove(key, element) {
    const hadFocus = element.contains(document.activeElement);
    element.remove();
    this.drawn.delete(key);
    if (hadFocus) this.scroller.focus({ preventScroll: true });
  }

  /* Keep the focus in a card that is drawn anew; when its button is gone, on the conversation. */
  swap(old, element) {
    const focused = old.contains(document.activeElement) ? document.activeElement : null;
    const decision = focused && focused.dataset.decision;
    old.replaceWith(element);
    if (!focused) return;
    const again = decision && element.querySelector(`[data-decision="${decision}"]:not([disabled])`);
    (again || this.scroller).focus({ preventScroll: true });
  }

  items() {
    const { store } = this;
    const items = [];
    const add = (kind, key, at, look, make) => items.push({ kind, key: `${kind}:${key}`, at, look, make });
    for (const message of store.message.values()) {
      add("message", message.seq, Date.parse(message.at), message, () => messageItem(message));
    }
    for (const [key, action] of store.action) {
      if (store.receipt.has(key)) continue; // the receipt takes its place
      const answer = store.answers.get(key) || null;
      add("action", key, Date.parse(action.at), [action, answer], () => actionItem(action, answer, this.onDecide));
    }
    for (const [key, receipt] of store.receipt) {
      const action = store.action.get(key) || null;
      const at = Date.parse(action ? action.at : receipt.at);
      add("receipt", key, at, [receipt, action], () => receiptItem(receipt, action));
    }
    for (const task of store.task.values()) this.addProgress(add, task);
    const { draft } = store;
    if (draft) add("draft", `${draft.task}:${draft.step}`, LATER - 1, draft, () => draftItem(draft));
    store.outbox.forEach((sent, index) => {
      add("out", sent.id, LATER + index, sent, () => outgoingItem(sent, this.onRetry));
    });
    return items.sort((a, b) => a.at - b.at || ORDER[a.kind] - ORDER[b.kind]);
  }

  addProgress(add, task) {
    const steps = this.store.stepsOf(task);
    const actions = steps.map((step) => this.store.actionOf(step));
    const at = task.is_live ? LATER - 1 : Date.parse(task.finished_at);
    add("progress", task.id, at, [task, steps, actions],
      () => progressItem(task, steps, (step) => this.store.actionOf(step), false));
  }

  /* Whatever is put before what is seen now does not move it. */
  stay() {
    this.sticks = false;
  }

  isAtEnd() {
    const { scrollHeight, scrollTop, clientHeight } = this.scroller;
    return scrollHeight - scrollTop - clientHeight < NEAR_END;
  }

  toEnd() {
    this.sticks = true;
    this.scroller.scrollTo({ top: this.scroller.scrollHeight, behavior: "instant" });
    this.hideLatest();
  }

  hideLatest() {
    this.latest.hidden = true;
  }
}

/* The chat in its frame: puts the line to the shop's page, the line to the service and the page
   together. */

import { Answers } from "./answers.js";
import { Bridge } from "./bridge.js";
import { ticketItem } from "./cards.js";
import { Forms } from "./forms.js";
import { keep, recall, forget } from "./memory.js";
import { Outbox, newId } from "./outbox.js";
import { Store } from "./store.js";
import { speak, t, tag } from "./strings.js";
import { Timeline } from "./timeline.js";
import { Transport } from "./transport.js";
import { Wish } from "./wish.js";
import { nowText } from "./words.js";

const MAX_TEXT = 4000;
const TELL_LEFT = 200;
const COMPLAINT_MS = 10000;
const IDEAS = ["idea1", "idea2", "idea3"];

const $ = (id) => document.getElementById(id);
const page = document.body.dataset;
const store = new Store();
const timeline = new Timeline({
  list: $("timeline"), scroller: $("talk"), latest: $("latest"), store, onDecide: decide, onRetry: retry,
});
const bridge = new Bridge(JSON.parse(page.origins), hear);
const transport = new Transport({
  key: page.key, token: () => bridge.token(), where: () => ({ ...store.where(), locale: tag() }),
  whose, onFrame, onState, onLost, onOtherCustomer: () => { wipe(); forget(); transport.restart(); },
});
const outbox = new Outbox({ store, send: (frame) => transport.send(frame) });
const answers = new Answers({ store, send: (frame) => transport.send(frame) });
const wish = new Wish((frame) => transport.send(frame));
const forms = new Forms({
  root: $("needs"), button: $("needs-button"), own: () => store.own, mentioned: () => store.mentioned,
  onOpened: askForOrders, onSubmit: sendForm, send: (frame) => transport.send(frame),
  onClosed: (hadFocus) => { wasOffered = store.newestTask; if (hadFocus) $("text").focus(); },
});

let wasOffered = null; // the task for which forms were offered, and put away again
let isOpen = false;
let state = "connecting";
let announced = "";
let waitsForStaffNote = false;
let complaint = 0;

/* ---- The shop's page ---- */

function hear(message) {
  const known = {
    init: () => begin(message),
    opened: () => { isOpen = true; seen(); $("text").focus(); },
    closed: () => { isOpen = false; },
    prefill: () => write(message.text),
    locale: () => { language(message.locale); transport.resume(); },
    theme: () => { document.documentElement.dataset.theme = message.theme; },
    identity: () => (message.canIdentify ? transport.restart() : undefined),
    reset: () => { transport.stop(); wipe(); forget(); onState("signed-out"); },
  };
  if (Object.hasOwn(known, message.type)) known[message.type]();
}

function begin(message) {
  language(message.locale);
  document.documentElement.dataset.theme = message.theme;
  isOpen = message.isOpen;
  store.clear(recall("ticket"));
  outbox.restore();
  if (isOpen) $("text").focus();
  transport.start();
}

/* The customer to whom everything here belongs; null for nobody's. */
function whose() {
  return store.customer ? store.customer.id : recall("customer");
}

function wipe() {
  forms.close();
  menu(false);
  $("tickets").replaceChildren();
  // What was written before anybody was signed in here is nobody else's.
  if (store.customer) write("");
  store.wipe();
  timeline.clear();
  wasOffered = null;
  wish.forget();
  waitsForStaffNote = false;
  keep("outbox", null);
  keep("ticket", null);
  bridge.tell({ type: "unread", count: 0 });
  draw();
}

/* ---- The service ---- */

function onFrame(frame) {
  if (frame.type === "snapshot") {
    welcome(frame);
    return;
  }
  const news = frame.type === "message" && !store.message.has(frame.message.seq) ? [frame.message] : [];
  store.apply(frame);
  if (frame.type === "error") refused(frame);
  if (frame.type === "tickets") showTickets(frame.tickets);
  if (frame.type === "orders") forms.ordersCame();
  if (frame.type === "done" && frame.for === "say") outbox.taken(frame);
  if (frame.type === "done" && frame.for === "form") forms.taken(frame.ref);
  if (["done", "error"].includes(frame.type) && frame.for === "person") wish.forget();
  tellOf(news);
  draw();
}

function tellOf(messages) {
  for (const { author } of messages) if (author !== "customer") bridge.tell({ type: "message", author });
  if (messages.length && !isOpen) count();
}

function welcome(frame) {
  const isSame = store.ticket && frame.ticket && store.ticket.id === frame.ticket.id;
  if (!isSame) timeline.clear();
  keep("customer", frame.customer.id);
  // Where there is no socket, all news comes so.
  const news = isSame ? frame.messages.filter(({ seq }) => !store.message.has(seq)) : [];
  store.apply(frame);
  tellOf(news);
  keep("ticket", store.ticket ? store.ticket.id : store.wanted);
  outbox.flush();
  answers.giveAgain();
  forms.giveAgain();
  wish.tell();
  draw({ isHistory: !isSame });
  if (forms.isOpen) askForOrders();
  if (!isOpen) count();
}

function onState(now) {
  state = now;
  // Whoever never was signed in, or has signed out, has no sign-in that could have ended.
  if (now === "signed-out" && transport.current) bridge.tell({ type: "authExpired" });
  draw();
}

/* Whatever was on its way is sent again once we know who we are. */
function onLost() {
  forms.lost();
  outbox.lost();
  answers.lost();
  wish.lost();
}

function refused(frame) {
  bridge.tell({ type: "error", code: frame.code });
  if (frame.for === "say") {
    outbox.refused(frame);
  } else if (frame.for === "decide") {
    answers.refused(frame);
  } else if (frame.for === "form") {
    forms.refused(frame);
  } else if (frame.for === "orders") {
    forms.ordersCame();
  } else if (frame.for !== "hello") {
    complain(frame.message);
  }
}

/* What went wrong with something that shows no trace of its own. */
function complain(text) {
  clearTimeout(complaint);
  $("problem").textContent = text;
  $("problem").hidden = false;
  complaint = setTimeout(() => { $("problem").hidden = true; }, COMPLAINT_MS);
  timeline.toEnd();
}

/* ---- What the customer does ---- */

function submit(text) {
  const task = store.liveTask;
  waitsForStaffNote = Boolean(task && task.waits_for === "staff");
  bridge.tell({ type: "used" });
  outbox.add(text, store.goesTo);
  draw();
  timeline.toEnd();
}

function retry(id) {
  outbox.retry(id);
  draw();
}

function decide(action, decision) {
  answers.give(action, decision);
  draw();
}

function sendForm({ id, tool, arguments: filled }) {
  const frame = {
    type: "form", tool, arguments: filled, client_message_id: id || newId(), ticket: store.goesTo,
  };
  bridge.tell({ type: "used" });
  return { id: frame.client_message_id, frame, isSent: transport.send(frame) };
}

function askForOrders() {
  transport.send({ type: "orders" });
}

function open(ticket) {
  menu(false);
  forms.close();
  store.clear(ticket);
  timeline.clear();
  waitsForStaffNote = false;
  transport.send({ type: "open", ticket });
  keep("ticket", ticket);
  draw();
  $("text").focus();
}

/* ---- The page ---- */

function draw(options) {
  timeline.draw(options);
  const task = store.liveTask;
  const isClosed = Boolean(store.ticket && store.ticket.status === "closed");
  const isEmpty = !store.message.size && !store.outbox.length;
  const isOut = state === "signed-out";
  const isWithPerson = Boolean(store.ticket && store.ticket.speaker === "staff" && !isClosed);
  document.body.classList.toggle("is-out", isOut);
  $("disclosure").textContent = t(isOut ? signedOutText() : "disclosure", { shop: page.shop });
  $("ideas").hidden = !isEmpty || state !== "open";
  $("earlier").hidden = !store.hasEarlier;
  $("closed").hidden = !isClosed;
  $("composer").hidden = isOut;
  $("person").hidden = isOut || isWithPerson;
  $("person").textContent = t(wish.isOpen ? "personAsked" : "person");
  $("needs-button").disabled = state !== "open";
  if (isOut) forms.close();
  offerForms();
  $("menu-button").hidden = isOut;
  $("stop").hidden = !task || task.is_stopping || state !== "open";
  $("model").hidden = isOut || !store.isDemoModel;
  $("model").textContent = t("demoModel");
  $("hint").hidden = !(waitsForStaffNote && task && task.waits_for === "staff");
  $("hint").textContent = t("waitsForStaffHint");
  $("presence").dataset.state = isOut ? "off" : isWithPerson ? "person" : state;
  $("presence-text").textContent = t(isWithPerson ? "withPerson" : "assistant");
  banner();
  announce(task);
  if (isOpen) seen();
}

/* With the assistant away, what can be done without it is offered by itself, once for each request. */
function offerForms() {
  const task = store.newestTask;
  const isAway = Boolean(task) && (task.waits_for === "model" || task.reason === "model_unavailable");
  if (isAway && !forms.isOpen && wasOffered?.id !== task.id && state === "open") forms.open({ isOffered: true });
  // Between two tries the task waits for nobody: that is no answer yet.
  const isStillTrying = Boolean(task && task.is_live && !task.waits_for);
  if (!isAway && !isStillTrying && forms.isOpen && forms.isOffered && !forms.chosen) forms.close();
}

function signedOutText() {
  if (!bridge.isEmbedded) return "notEmbedded";
  return store.customer ? "signInAgain" : "signIn";
}

function banner() {
  const texts = { connecting: "connecting", reconnecting: "reconnecting", offline: "offline", crowded: "tooManyWindows" };
  $("banner").hidden = !Object.hasOwn(texts, state);
  $("banner").dataset.tone = state === "connecting" ? "calm" : "warn";
  $("banner").textContent = Object.hasOwn(texts, state) ? t(texts[state]) : "";
}

/* Whose turn it is, for those who do not see it. */
function announce(task) {
  const now = task && task.waits_for ? nowText(task, store.stepsOf(task), (step) => store.actionOf(step)) : "";
  if (now === announced) return;
  announced = now;
  $("announcer").textContent = now;
}

function seen() {
  if (!store.ticket) return;
  keep(`seen-${store.ticket.id}`, Math.max(0, ...store.message.keys()));
  bridge.tell({ type: "unread", count: 0 });
}

/* What came since the customer last looked, or else since they last wrote. */
function count() {
  if (!store.ticket) return;
  const all = [...store.message.values()];
  const written = all.filter((item) => item.author === "customer").map((item) => item.seq);
  const last = recall(`seen-${store.ticket.id}`) ?? Math.max(0, ...written);
  const unread = all.filter((item) => item.seq > last && item.author !== "customer");
  bridge.tell({ type: "unread", count: unread.length });
}

function showTickets(tickets) {
  const current = store.ticket ? store.ticket.id : null;
  const items = tickets.map((ticket) => ticketItem(ticket, ticket.id === current, open));
  $("tickets").replaceChildren(...items);
  $("no-tickets").hidden = items.length > 0;
}

function menu(isShown) {
  $("menu").hidden = !isShown;
  $("menu-button").setAttribute("aria-expanded", String(isShown));
  if (isShown) {
    transport.send({ type: "tickets" });
    $("new").focus();
  }
}

function write(text) {
  $("text").value = text;
  grow();
}

function grow() {
  const field = $("text");
  field.style.blockSize = "auto";
  field.style.blockSize = `${Math.min(field.scrollHeight, 160)}px`;
  const left = MAX_TEXT - field.value.length;
  $("count").hidden = left > TELL_LEFT;
  $("count").textContent = left > TELL_LEFT ? "" : t("left", { count: left });
  $("send").disabled = !field.value.trim();
}

function language(locale) {
  document.documentElement.lang = speak(locale);
  for (const node of document.querySelectorAll("[data-text]")) node.textContent = t(node.dataset.text);
  for (const node of document.querySelectorAll("[data-label]")) node.setAttribute("aria-label", t(node.dataset.label));
  for (const node of document.querySelectorAll("[data-placeholder]")) node.placeholder = t(node.dataset.placeholder);
  ideas();
  // An open form keeps what was chosen of them until they come in this language.
  if (forms.isOpen) forms.redraw();
  else store.forgetOrders();
  timeline.clear();
  draw({ isHistory: true });
}

function ideas() {
  $("ideas").replaceChildren(...IDEAS.map((name) => {
    const item = document.createElement("li");
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = t(name);
    button.addEventListener("click", () => submit(t(name)));
    item.append(button);
    return item;
  }));
}

$("composer").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = $("text").value.trim();
  if (!text) return;
  write("");
  submit(text);
});
$("text").addEventListener("input", grow);
$("text").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  $("composer").requestSubmit();
});
$("stop").addEventListener("click", () => {
  if (store.liveTask) transport.send({ type: "cancel", task: store.liveTask.id });
});
$("person").addEventListener("click", () => { wish.make(); draw(); });
$("menu-button").addEventListener("click", () => menu($("menu").hidden));
$("earlier").addEventListener("click", () => {
  timeline.stay();
  transport.send({ type: "earlier", before: store.firstSeq });
});
$("new").addEventListener("click", () => open("new"));
$("close").addEventListener("click", () => bridge.tell({ type: "close" }));
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  if (!$("menu").hidden) {
    menu(false);
    $("menu-button").focus();
  } else {
    bridge.tell({ type: "close" });
  }
});

language(navigator.language);
grow();
if (!bridge.isEmbedded) {
  $("close").hidden = true;
  onState("signed-out");
}

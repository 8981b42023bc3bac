// What the console's pages do beyond links, forms and htmx: they work without it.
"use strict";

(() => {
  const offline = () => document.getElementById("connection");

  // A poll that gets no answer: say so, once, and take it back when one does. Of what somebody has
  // sent nobody knows then whether it was done, and no poll takes that back.
  const isSent = (event) => event.detail.requestConfig.triggeringEvent?.type === "submit";
  const unanswered = (event) => {
    const line = offline();
    if (!line || line.dataset.sent) return;
    if (isSent(event)) line.dataset.sent = "yes";
    const words = isSent(event)
      ? "The server did not answer, so it is not known whether that was done. Load this page again to see."
      : "The server cannot be reached; this page shows what was last known.";
    if (line.textContent !== words) line.textContent = words;
    if (isSent(event)) line.scrollIntoView({ block: "center" });
  };
  document.addEventListener("htmx:sendError", unanswered);
  document.addEventListener("htmx:timeout", unanswered);
  document.addEventListener("htmx:responseError", (event) => {
    if (event.detail.xhr.status >= 500) unanswered(event);
  });
  document.addEventListener("htmx:afterRequest", (event) => {
    const line = offline();
    if (!line || !event.detail.successful || (line.dataset.sent && !isSent(event))) return;
    line.textContent = "";
    delete line.dataset.sent;
  });

  // A refusal takes the focus, so that it is read where the eyes and the screen reader are.
  document.addEventListener("htmx:afterSwap", (event) => {
    const refusal = event.detail.target.querySelector?.("#refusal");
    const field = event.detail.target.querySelector?.("[aria-invalid=true]");
    if (refusal) (field ?? event.detail.target.querySelector("input:not([type=hidden]), textarea, a"))?.focus();
  });

  // What the reader has opened or ticked stays so when the part around it is replaced.
  const opened = new Set();
  const ticked = new Set();
  document.addEventListener("htmx:beforeSwap", (event) => {
    opened.clear();
    ticked.clear();
    for (const part of event.detail.target.querySelectorAll("details[open][id]")) opened.add(part.id);
    for (const box of event.detail.target.querySelectorAll("input[type=checkbox][id]:checked")) ticked.add(box.id);
  });
  document.addEventListener("htmx:afterSwap", () => {
    for (const id of opened) {
      const part = document.getElementById(id);
      if (part instanceof HTMLDetailsElement) part.open = true;
    }
    for (const id of ticked) {
      const box = document.getElementById(id);
      if (box instanceof HTMLInputElement) box.checked = true;
    }
  });

  // All the questions of a page at once.
  const pickAll = document.getElementById("pick-all");
  if (pickAll) {
    document.getElementById("pick-all-label").hidden = false;
    pickAll.addEventListener("change", () => {
      for (const box of document.querySelectorAll("input[name=approval]")) box.checked = pickAll.checked;
    });
  }

  // A plain form is sent once, however often its button is pressed.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.hasAttribute("hx-post") || form.method === "dialog" || form.dataset.again !== undefined) return;
    if (form.dataset.sent) {
      event.preventDefault();
      return;
    }
    form.dataset.sent = "yes";
  });
  window.addEventListener("pageshow", () => {
    for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
  });

  // On a phone the menu is a strip: show where one is in it.
  const here = document.querySelector(".bar nav [aria-current]");
  const strip = here?.closest("ul");
  if (strip) strip.scrollLeft = here.offsetLeft + here.offsetWidth / 2 - strip.clientWidth / 2;

  // A link to a step opens it.
  const openTarget = () => {
    const id = location.hash.slice(1);
    const target = id && document.getElementById(id);
    if (target instanceof HTMLDetailsElement) {
      target.open = true;
      target.scrollIntoView({ block: "start" });
    }
  };
  window.addEventListener("hashchange", openTarget);
  openTarget();

  // --- Single keys, for whoever has not switched them off --------------------------------------

  const rows = () => [...document.querySelectorAll("[data-row] th.lead a")];
  const move = (by) => {
    const links = rows();
    const here = links.findIndex((link) => link.closest("[data-row]").contains(document.activeElement));
    const next = here < 0 ? (by > 0 ? 0 : links.length - 1) : Math.min(Math.max(here + by, 0), links.length - 1);
    links[next]?.focus();
    return links.length > 0;
  };
  const focusOn = (id) => {
    const field = document.getElementById(id);
    field?.focus();
    field?.scrollIntoView({ block: "center" });
    return Boolean(field);
  };
  let asked = null;
  const dialog = document.querySelector("dialog#confirm");
  dialog?.addEventListener("close", () => {
    // It is told late: by then the next question may be open, whose answer is still to come.
    if (!dialog.open && dialog.returnValue === "yes") asked.requestSubmit();
  });
  const confirmed = (form, words) => {
    document.getElementById("confirm-title").textContent = words;
    dialog.returnValue = "";
    asked = form;
    dialog.showModal();
    return true;
  };
  // In a list the question is opened at the place where it is answered.
  const openAt = (place) => {
    const link = document.activeElement?.closest("[data-row]")?.querySelector("th.lead a");
    if (link) location.assign(`${link.href}#${place}`);
    return Boolean(link);
  };
  const approve = () => {
    const yes = document.querySelector("#decision input[name=decision][value=approve]")?.form;
    if (!yes) return openAt("decision");
    // Asked for once more: by the password where money moves, by a question where none does.
    const proof = yes.querySelector("input:not([type=hidden])");
    if (proof) return proof.focus(), true;
    return confirmed(yes, `${yes.querySelector(".stake").textContent}?`);
  };
  const takeOver = () => {
    const form = document.getElementById("take-over");
    return Boolean(form) && confirmed(form, "Take the case over?");
  };
  const follow = (rel) => {
    const link = document.querySelector(`a[rel=${rel}]`);
    link?.click();
    return Boolean(link);
  };
  const commands = {
    j: () => move(1),
    k: () => move(-1),
    a: approve,
    r: () => focusOn("reason") || openAt("reason"),
    t: takeOver,
    n: () => focusOn("note"),
    "/": () => focusOn("q"),
    "[": () => follow("prev"),
    "]": () => follow("next"),
    "?": () => (document.getElementById("key-help").showModal(), true),
  };
  const isTyping = (target) =>
    target instanceof Element && Boolean(target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]"));
  document.addEventListener("keydown", (event) => {
    if (!("keys" in document.body.dataset) || event.ctrlKey || event.altKey || event.metaKey || event.repeat) return;
    if (isTyping(event.target) || document.querySelector("dialog[open]")) return;
    if (Object.hasOwn(commands, event.key) && commands[event.key]()) event.preventDefault();
  });

  // A link to a field puts the cursor there.
  if (location.hash === "#reason" || location.hash === "#note") focusOn(location.hash.slice(1));
})();

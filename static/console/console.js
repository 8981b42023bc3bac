// What the console's pages do beyond links, forms and htmx: they work without it.
"use strict";

(() => {
  const offline = () => document.getElementById("connection");

  // A poll that gets no answer: say so, once, and take it back when one does.
  document.addEventListener("htmx:sendError", () => {
    const line = offline();
    if (line && !line.textContent) {
      line.textContent = "The server cannot be reached; this page shows what was last known.";
    }
  });
  document.addEventListener("htmx:afterRequest", (event) => {
    const line = offline();
    if (line && event.detail.successful) line.textContent = "";
  });

  // A refusal takes the focus, so that it is read where the eyes and the screen reader are.
  document.addEventListener("htmx:afterSwap", (event) => {
    const refusal = event.detail.target.querySelector?.("#refusal");
    const field = event.detail.target.querySelector?.("[aria-invalid=true]");
    if (refusal) (field ?? event.detail.target.querySelector("input:not([type=hidden]), textarea, a"))?.focus();
  });

  // What the reader has opened stays open when the part around it is replaced.
  const opened = new Set();
  document.addEventListener("htmx:beforeSwap", (event) => {
    opened.clear();
    for (const part of event.detail.target.querySelectorAll("details[open][id]")) opened.add(part.id);
  });
  document.addEventListener("htmx:afterSwap", () => {
    for (const id of opened) {
      const part = document.getElementById(id);
      if (part instanceof HTMLDetailsElement) part.open = true;
    }
  });

  // A plain form is sent once, however often its button is pressed.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.hasAttribute("hx-post") || form.dataset.again !== undefined) return;
    if (form.dataset.sent) {
      event.preventDefault();
      return;
    }
    form.dataset.sent = "yes";
  });
  window.addEventListener("pageshow", () => {
    for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
  });

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
})();

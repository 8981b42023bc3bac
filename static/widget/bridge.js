/* The line to the shop's page that embeds us. It brings the customer's token; we tell it when to
   close and how much is unread. Only a page of the shop's own list is spoken to, by its exact
   origin. */

const ANSWER_MS = 10000;

export class Bridge {
  constructor(origins, on) {
    this.origins = new Set(origins);
    this.on = on;
    this.origin = null;
    this.asked = new Map();
    this.next = 1;
    window.addEventListener("message", (event) => this.hear(event));
  }

  get isEmbedded() {
    return window.parent !== window;
  }

  hear(event) {
    if (!this.isEmbedded || event.source !== window.parent || !this.origins.has(event.origin)) return;
    const message = event.data && event.data.countersign;
    if (!message || typeof message.type !== "string") return;
    if (message.type === "init") {
      this.origin = event.origin;
      this.tell({ type: "ready" });
    } else if (this.origin !== event.origin) {
      return;
    }
    if (message.type === "token") this.settle(message.id, message.token, message.isUnknown);
    else this.on(message);
  }

  tell(message) {
    if (this.origin) window.parent.postMessage({ countersign: message }, this.origin);
  }

  /* The customer's token, asked for anew each time; null when the page has none to give, undefined
     when it could not say. */
  token() {
    if (!this.origin) return Promise.resolve(null);
    const id = this.next++;
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.settle(id, null, true), ANSWER_MS);
      this.asked.set(id, { resolve, timer });
      this.tell({ type: "identify", id });
    });
  }

  settle(id, token, isUnknown = false) {
    const asked = this.asked.get(id);
    if (!asked) return;
    this.asked.delete(id);
    clearTimeout(asked.timer);
    if (isUnknown) asked.resolve(undefined);
    else asked.resolve(typeof token === "string" && token ? token : null);
  }
}

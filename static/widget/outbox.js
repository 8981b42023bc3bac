/* Messages that the service has not taken yet. They outlive a change of page and are sent once there
   is a line: the same id again is the same message, so sending once more is harmless. */

import { keep, recall } from "./memory.js";

/* Not crypto.randomUUID: it is missing where a page came over plain HTTP. */
export const newId = () =>
  Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join("-");

export class Outbox {
  constructor({ store, send }) {
    Object.assign(this, { store, send });
  }

  restore() {
    this.store.outbox = (recall("outbox") || []).map((sent) => ({ ...sent, problem: "", isSent: false }));
  }

  add(text, ticket) {
    this.put([...this.store.outbox, { id: newId(), text, ticket, problem: "", isSent: false }]);
    this.flush();
  }

  /* Send what waits, if there is a line. */
  flush() {
    this.store.outbox = this.store.outbox.map((sent) => {
      if (sent.isSent || sent.problem) return sent;
      const isSent = this.send({
        type: "say", text: sent.text, client_message_id: sent.id, ticket: sent.ticket,
      });
      return { ...sent, isSent };
    });
  }

  /* A message that the service had already taken is told of by nothing but this. */
  taken({ ref, ticket, seq }) {
    const { store } = this;
    const isKnown = store.ticket && store.ticket.id === ticket && store.message.has(seq);
    this.put(isKnown ? store.outbox.filter((sent) => sent.id !== ref) : store.outbox);
  }

  refused({ ref, code, message }) {
    this.put(this.store.outbox.map((sent) => {
      if (sent.id !== ref) return sent;
      const ticket = code === "ticket-closed" ? "new" : sent.ticket;
      return { ...sent, ticket, isSent: true, problem: message };
    }));
  }

  retry(id) {
    this.store.outbox = this.store.outbox.map((sent) => (sent.id === id ? { ...sent, problem: "", isSent: false } : sent));
    this.flush();
  }

  /* Whatever was on its way may not have arrived. */
  lost() {
    this.store.outbox = this.store.outbox.map((sent) => ({ ...sent, isSent: false }));
  }

  put(messages) {
    this.store.outbox = messages;
    keep("outbox", messages);
  }
}

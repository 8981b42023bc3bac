/* Messages that the service has not taken yet. They outlive a change of page and are sent once there
   is a line: the same id again is the same message, so sending once more is harmless. */

import { keep, recall } from "./memory.js";

/* Not crypto.randomUUID: it is missing where a page came over plain HTTP. */
export const newId = () =>
  Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join("-");

/* What no frame may hold: half of a character, as a page's prefill may end with, and NUL. */
const clean = (text) => (text.toWellFormed ? text.toWellFormed() : text).replaceAll("\0", "");

export class Outbox {
  constructor({ store, send }) {
    Object.assign(this, { store, send });
  }

  restore() {
    this.store.outbox = (recall("outbox") || []).map((sent) => ({ ...sent, problem: "", isSent: false }));
  }

  add(text, ticket) {
    this.put([...this.store.outbox, { id: newId(), text: clean(text), ticket, problem: "", isSent: false }]);
    this.flush();
  }

  /* Send what waits, if there is a line. Of several that would begin a conversation the first does, and
     the others wait for its number: they are for the same one. */
  flush() {
    let isBeginning = this.store.outbox.some((sent) => sent.isSent && !sent.problem && sent.ticket === "new");
    this.store.outbox = this.store.outbox.map((sent) => {
      // What was written before we knew where we are is for where we turned out to be.
      const ticket = sent.ticket ?? this.store.goesTo;
      if (sent.isSent || sent.problem || (isBeginning && ticket === "new")) return sent;
      const isSent = this.send({
        type: "say", text: sent.text, client_message_id: sent.id, ticket,
      });
      isBeginning ||= isSent && ticket === "new";
      return isSent ? { ...sent, ticket, isSent } : sent;
    });
  }

  /* A message that the service had already taken is told of by nothing but this. */
  taken({ ref, ticket, seq }) {
    const { store } = this;
    // One for a conversation that is not the one shown will not be told of here.
    const isSettled = store.ticket && (store.ticket.id !== ticket || store.message.has(seq));
    store.began(ref, ticket);
    this.put(isSettled ? store.outbox.filter((sent) => sent.id !== ref) : store.outbox);
    this.flush();
  }

  refused({ ref, code, message }) {
    this.put(this.store.outbox.map((sent) => {
      if (sent.id !== ref) return sent;
      const ticket = code === "ticket-closed" ? "new" : sent.ticket;
      return { ...sent, ticket, isSent: true, problem: message };
    }));
    this.flush();
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

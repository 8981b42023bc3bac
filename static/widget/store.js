/* What is known of the conversation. Frames are laid over it; each thing has one place, so the same
   frame twice changes nothing. */

const KEYS = {
  message: (item) => item.seq,
  task: (item) => item.id,
  step: (item) => `${item.task}:${item.n}`,
  action: (item) => `${item.task}:${item.step}`,
  receipt: (item) => `${item.task}:${item.step}`,
};

const NO_ORDERS = { orders: [], isAway: false };

export class Store {
  constructor() {
    this.wipe();
  }

  wipe() {
    this.customer = null;
    this.isDemoModel = false;
    this.own = NO_ORDERS;
    this.outbox = [];
    this.answers = new Map();
    this.clear(null);
  }

  /* Turn to another conversation; what waits to be sent stays. `ticket` may be "new". */
  clear(ticket) {
    this.wanted = ticket;
    this.ticket = null;
    this.hasEarlier = false;
    this.message = new Map();
    this.task = new Map();
    this.step = new Map();
    this.action = new Map();
    this.receipt = new Map();
    this.delta = null;
  }

  /* The conversation that a message or a form is for now: null for the one that we shall turn out to
     be in, while that is not known. */
  get goesTo() {
    if (!this.ticket) return this.wanted === "new" ? "new" : null;
    return this.ticket.status === "closed" ? "new" : this.ticket.id;
  }

  /* A message of ours is in this conversation. When it began it, the others that were to begin one
     go on in it. */
  began(id, ticket) {
    const first = this.outbox.find((sent) => sent.id === id);
    if (!first || first.ticket !== "new") return;
    this.outbox = this.outbox.map((sent) => (sent !== first && sent.ticket === "new" ? { ...sent, ticket } : sent));
  }

  where() {
    return { ticket: this.ticket ? this.ticket.id : this.wanted, after: this.after() };
  }

  /* The customer's orders are told in a language; in another they must be asked for again. */
  forgetOrders() {
    this.own = NO_ORDERS;
  }

  after() {
    const finished = [...this.step.values()].filter((step) => step.status === "finished");
    const last = finished.sort((a, b) => a.task - b.task || a.n - b.n).at(-1);
    return { message: Math.max(0, ...this.message.keys()), event: last ? last.event : "" };
  }

  apply(frame) {
    if (frame.type === "snapshot") this.applySnapshot(frame);
    else if (frame.type === "delta") this.delta = frame;
    else if (frame.type === "orders") this.own = { orders: frame.orders, isAway: false };
    else if (frame.type === "error" && frame.for === "orders") this.own = { orders: [], isAway: true };
    else if (frame.type === "earlier") this.applyEarlier(frame);
    else if (frame.type === "ticket") this.ticket = frame.ticket;
    else if (Object.hasOwn(KEYS, frame.type)) this.lay(frame.type, frame[frame.type]);
  }

  applySnapshot(frame) {
    const id = frame.ticket ? frame.ticket.id : null;
    if (!this.ticket || this.ticket.id !== id) this.clear(id ?? this.wanted);
    this.customer = frame.customer;
    this.isDemoModel = frame.is_demo_model;
    this.ticket = frame.ticket;
    // More has come than a snapshot holds: what was known before the gap comes again when asked for.
    if (frame.has_earlier && frame.messages[0].seq > this.after().message + 1) this.message = new Map();
    this.hasEarlier = this.hasEarlier || frame.has_earlier;
    for (const kind of Object.keys(KEYS)) {
      for (const item of frame[`${kind}s`]) this.lay(kind, item);
    }
  }

  applyEarlier(frame) {
    this.hasEarlier = frame.has_earlier;
    for (const item of frame.messages) this.lay("message", item);
  }

  /* A reply that is being written, until its step has ended: then it is said, or was not to be. */
  get draft() {
    if (!this.delta) return null;
    const task = this.task.get(this.delta.task);
    const step = this.step.get(`${this.delta.task}:${this.delta.step}`);
    const isWritten = !task || !task.is_live || (step && step.status === "finished");
    const isBrokenOff = !isWritten && task.waits_for === "model";
    return isWritten || isBrokenOff ? null : this.delta;
  }

  get firstSeq() {
    return Math.min(...this.message.keys());
  }

  /* Orders that this conversation speaks of. */
  get mentioned() {
    const named = [...this.step.values()].flatMap((step) => [step.about, step.order_id]);
    return [...new Set(named)].filter((id) => id && id !== "-");
  }

  lay(kind, item) {
    this[kind].set(KEYS[kind](item), item);
    if (kind === "message" && item.client_message_id) {
      this.began(item.client_message_id, item.ticket);
      this.outbox = this.outbox.filter((sent) => sent.id !== item.client_message_id);
    }
    if (kind === "action") this.settleAnswer(item);
  }

  /* An answer of ours is under way until the action looks different from when it was given. */
  settleAnswer(action) {
    const key = KEYS.action(action);
    const answer = this.answers.get(key);
    if (answer && (answer.status !== action.status || answer.state !== action.state)) {
      this.answers.delete(key);
    }
  }

  get liveTask() {
    return [...this.task.values()].filter((task) => task.is_live).at(-1) || null;
  }

  get newestTask() {
    return [...this.task.values()].sort((a, b) => a.id - b.id).at(-1) || null;
  }

  stepsOf(task) {
    return [...this.step.values()].filter((step) => step.task === task.id).sort((a, b) => a.n - b.n);
  }

  actionOf(step) {
    return this.action.get(`${step.task}:${step.n}`) || null;
  }
}

export { KEYS };

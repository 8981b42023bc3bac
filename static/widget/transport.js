/* Frames to and from the service: over a WebSocket, or where none gets through by asking over HTTP.

   `where()` tells what to resume: the ticket, and what of it is known; `whose()` the customer whose
   ticket that is, or null. `onFrame` gets every frame, `onState` one of connecting, open,
   reconnecting, offline, signed-out, crowded; `onLost` is called whenever a line goes, for whatever
   reason: what was on it may not have arrived; `onOtherCustomer` is called when the service knows
   somebody else here, of whom nothing has been shown nor asked yet. */

const PROTOCOL = "chat.v1";
const LONGEST_MS = 30000;
const PING_MS = 25000;
const SILENCE_MS = 60000;
const POLL_MS = 3000;
const EXCHANGE_MS = 30000;
const RENEW_BEFORE_MS = 60000;
const RENEW_AGAIN_MS = 5000;
const TRIES_BEFORE_POLLING = 3;
const TRIES_WHERE_IT_WORKED = 7; // in two minutes or so: it may be another network by now
const POLLS_BEFORE_PROBE = 200;
const UNAUTHENTICATED = 4401;
const OTHER_CUSTOMER = 4403;
const CROWDED = 4429;
const NO_ANSWER = 1006;
const BAD_FRAME = 400; // of HTTP: a refusal, which says of what
/* What tells of the conversation that is shown; the rest answers whoever asked, wherever they are now. */
const OF_CONVERSATION = new Set([
  "snapshot", "ticket", "message", "task", "step", "action", "receipt", "delta", "earlier",
]);

export class Transport {
  constructor({ key, token, where, whose, onFrame, onState, onLost, onOtherCustomer }) {
    Object.assign(this, { key, token, where, whose, onFrame, onState, onLost, onOtherCustomer });
    this.socket = null;
    this.current = null; // the token that was given last
    this.wanted = false;
    this.run = 0;
    this.failures = 0;
    this.refusals = 0;
    this.hasWorked = false;
    this.isPolling = false;
    this.polls = 0;
    this.isReady = false;
    this.greetedFor = undefined; // the conversation that a greeting without an answer was for
    this.timers = {};
    this.exchanged = Promise.resolve(); // when the last exchange has ended
    window.addEventListener("online", () => this.wanted && this.connect());
    window.addEventListener("offline", () => this.wanted && this.lose("offline"));
  }

  start() {
    if (this.wanted) return;
    this.wanted = true;
    this.refusals = 0;
    this.onState("connecting");
    this.connect();
  }

  stop() {
    this.wanted = false;
    this.current = null;
    this.drop();
  }

  /* The same, said anew: the service is to know of a change, of language for instance. */
  resume() {
    if (this.wanted) this.connect();
  }

  /* Start again from nothing, as somebody else perhaps. */
  restart() {
    this.stop();
    this.failures = 0;
    this.start();
  }

  /* False when there is no connection to send it over; nothing is kept then. */
  send(frame) {
    if (this.isPolling && this.isReady) {
      this.exchange(frame);
      return true;
    }
    if (!this.isReady || !this.socket || this.socket.readyState !== WebSocket.OPEN) return false;
    this.socket.send(JSON.stringify(frame));
    return true;
  }

  drop() {
    this.run += 1;
    this.isReady = false;
    Object.values(this.timers).forEach(clearTimeout);
    this.timers = {};
    const socket = this.socket;
    this.socket = null;
    if (socket) socket.close(1000);
    this.onLost();
  }

  async connect() {
    this.drop();
    const run = this.run;
    if (navigator.onLine === false) return this.lose("offline");
    const token = await this.token();
    if (run !== this.run || !this.wanted) return undefined;
    if (token === undefined && this.current) return this.closed(NO_ANSWER);
    if (!token) return this.refuse();
    this.current = token;
    if (this.isPolling) return this.poll();
    return this.dial(run, token);
  }

  newSocket() {
    const address = new URL("/ws/chat/", location.href);
    address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    return new WebSocket(address, PROTOCOL);
  }

  /* Now and then, beside the polling: whether a socket gets through by now, both ways. */
  probe() {
    const run = this.run;
    const socket = this.newSocket();
    socket.addEventListener("open", () => socket.send("{}")); // no greeting, which the service says
    socket.addEventListener("message", () => {
      if (run !== this.run) return;
      this.isPolling = false;
      this.connect();
    });
  }

  dial(run, token) {
    const socket = this.newSocket();
    this.socket = socket;
    const isCurrent = () => run === this.run;
    socket.addEventListener("open", () => {
      if (!isCurrent()) return;
      const where = this.where();
      this.greetedFor = where.ticket;
      socket.send(JSON.stringify({ type: "hello", token, key: this.key, ...where }));
      this.listenForSilence();
    });
    socket.addEventListener("message", (event) => isCurrent() && this.hear(JSON.parse(event.data)));
    socket.addEventListener("close", (event) => isCurrent() && this.closed(event.code));
  }

  hear(frame) {
    this.heardAt = Date.now();
    if (frame.type === "snapshot") {
      // What was chosen, written or under way here is the other one's: it is neither sent nor kept.
      if (![null, frame.customer.id].includes(this.whose())) {
        this.onOtherCustomer();
        return;
      }
      this.ready(frame);
      if (this.hasTurnedAway()) return;
    } else if (frame.type === "auth_expired") {
      this.renew();
      return;
    } else if (frame.type === "done" && frame.for === "token") {
      this.renewBefore(frame);
      return;
    }
    if (frame.type !== "pong") this.onFrame(frame);
  }

  /* Whether the customer chose another conversation while the greeting was under way. The service is
     told of it then, and its answer is the one that counts. */
  hasTurnedAway() {
    const { ticket } = this.where();
    const isElsewhere = this.greetedFor !== undefined && ticket !== this.greetedFor;
    this.greetedFor = undefined;
    return isElsewhere && this.send({ type: "open", ticket });
  }

  ready(frame) {
    this.isReady = true;
    this.hasWorked = true;
    this.failures = 0;
    this.refusals = 0;
    this.renewBefore(frame);
    this.onState("open");
  }

  closed(code) {
    this.drop();
    if (!this.wanted) return;
    if (code === OTHER_CUSTOMER) {
      this.onOtherCustomer();
      return;
    }
    if (code === UNAUTHENTICATED) {
      this.refusals += 1;
      if (this.refusals > 1) {
        this.refuse();
        return;
      }
    }
    this.failures += 1;
    if (!this.isPolling && this.failures >= (this.hasWorked ? TRIES_WHERE_IT_WORKED : TRIES_BEFORE_POLLING)) {
      this.isPolling = true;
      this.polls = 0;
      this.failures = 0;
    }
    this.lose(code === CROWDED ? "crowded" : "reconnecting");
  }

  lose(state) {
    this.drop();
    this.onState(state);
    if (state !== "offline") this.timers.again = setTimeout(() => this.connect(), this.pause());
  }

  /* Doubling, with chance in it so that many do not come back in the same instant. */
  pause() {
    const longest = Math.min(LONGEST_MS, 1000 * 2 ** Math.max(0, this.failures - 1));
    return longest * (0.5 + Math.random() / 2);
  }

  refuse() {
    this.wanted = false;
    this.drop();
    this.onState("signed-out");
  }

  listenForSilence() {
    this.heardAt = Date.now();
    this.timers.ping = setInterval(() => {
      if (Date.now() - this.heardAt > SILENCE_MS) this.closed(NO_ANSWER);
      else this.send({ type: "ping" });
    }, PING_MS);
  }

  /* By how long it has left, and not by the clock here, which may be wrong by hours. */
  renewBefore({ expires_at: expiresAt, expires_in: seconds }) {
    // Who polls is told the same each time, more often than the shortest wait.
    if (this.timers.renew && this.expiresAt === expiresAt) return;
    this.expiresAt = expiresAt;
    clearTimeout(this.timers.renew);
    // A service of the version before tells of the end alone.
    const left = (seconds ?? (Date.parse(expiresAt) - Date.now()) / 1000) * 1000 - RENEW_BEFORE_MS;
    this.timers.renew = setTimeout(() => this.renew(), Math.max(RENEW_AGAIN_MS, left));
  }

  async renew() {
    clearTimeout(this.timers.renew);
    delete this.timers.renew;
    const run = this.run;
    const token = await this.token();
    if (run !== this.run) return;
    if (token === undefined) {
      // The one we have serves until it ends.
      this.timers.renew = setTimeout(() => this.renew(), RENEW_AGAIN_MS);
      return;
    }
    if (!token) {
      this.refuse();
      return;
    }
    this.current = token;
    if (!this.isPolling) {
      this.send({ type: "token", token });
      return;
    }
    // Nothing is sent with it before its answer has shown whose it is.
    this.isReady = false;
    this.exchange(null);
  }

  async poll() {
    const run = this.run;
    await this.exchange(null);
    if (run !== this.run || !this.wanted) return;
    this.timers.poll = setTimeout(() => this.poll(), POLL_MS);
    this.polls += 1;
    if (this.polls % POLLS_BEFORE_PROBE === 0) this.probe();
  }

  /* One after the other, as over a socket: no picture of before is laid over one of after. A list of
     orders may keep us waiting for the shop; it waits for nobody, and nobody for it. */
  exchange(frame) {
    const run = this.run;
    if (frame && frame.type === "orders") return this.request(frame, run);
    const turn = this.exchanged.then(() => this.request(frame, run));
    this.exchanged = turn;
    return turn;
  }

  async request(frame, run) {
    if (run !== this.run) return;
    const asked = this.where();
    let response;
    try {
      response = await fetch("/widget/exchange", {
        method: "POST",
        headers: { "Content-Type": "application/json", Authorization: `Bearer ${this.current}` },
        body: JSON.stringify({ key: this.key, frame, ...asked }),
        signal: AbortSignal.timeout(EXCHANGE_MS),
      });
    } catch {
      if (run === this.run) this.closed(NO_ANSWER);
      return;
    }
    if (run !== this.run) return;
    if (response.status === 401) {
      this.closed(UNAUTHENTICATED);
    } else if (!response.ok && response.status !== BAD_FRAME) {
      this.closed(NO_ANSWER); // what was sent with it may not have been taken
    } else {
      const told = await response.json().catch(() => null);
      if (run !== this.run) return;
      const frames = response.ok ? told?.frames : told && [told];
      if (!frames) {
        this.closed(NO_ANSWER); // half an answer, or that of somebody in between
        return;
      }
      // Whoever has turned to another conversation meanwhile is not taken back to that one.
      const isThere = this.where().ticket === asked.ticket && !(frame && frame.type === "orders");
      frames.filter(({ type }) => isThere || !OF_CONVERSATION.has(type))
        .forEach((answer) => run === this.run && this.hear(answer));
    }
  }
}

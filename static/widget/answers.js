/* The customer's answers that are under way. One whose fate is not known, as the line went with it, is
   given once more when there is a line again: the same id is the same answer, so that is harmless. */

import { newId } from "./outbox.js";
import { t } from "./strings.js";

export class Answers {
  constructor({ store, send }) {
    Object.assign(this, { store, send });
  }

  /* Without a line nothing is kept: a yes is to be said when it can be heard. */
  give(action, decision) {
    const id = newId();
    const frame = {
      type: "decide", task: action.task, step: action.step, digest: action.digest, decision, decision_id: id,
    };
    const isUnsaid = !this.send(frame);
    const problem = isUnsaid ? t("reconnecting") : "";
    this.store.answers.set(`${action.task}:${action.step}`, {
      id, frame, status: action.status, state: action.state, problem, isUnsaid, isLost: false,
    });
  }

  refused({ ref, message }) {
    this.each((answer) => answer.id === ref, (answer) => ({ ...answer, problem: message, isLost: false }));
  }

  /* Whatever was on its way may not have arrived. */
  lost() {
    this.each((answer) => !answer.problem, (answer) => ({ ...answer, isLost: true }));
  }

  /* Once it is known how things stand: what looks different by now has been answered. */
  giveAgain() {
    const { answers } = this.store;
    for (const [key, { isUnsaid }] of answers) if (isUnsaid) answers.delete(key);
    this.each((answer) => answer.isLost, (answer) => ({ ...answer, isLost: !this.send(answer.frame) }));
  }

  each(isMeant, change) {
    const { answers } = this.store;
    for (const [key, answer] of answers) if (isMeant(answer)) answers.set(key, change(answer));
  }
}

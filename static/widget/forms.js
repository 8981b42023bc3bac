/* What a customer can do by themselves, with no assistant to understand them: four forms. Each makes
   one call, which goes the way that the assistant's own calls go. */

import { el, icon } from "./dom.js";
import { OrderPicker, fault } from "./orders.js";
import { t } from "./strings.js";

const REFUND_REASONS = ["damaged", "not_received", "wrong_item", "not_as_described", "changed_mind", "other"];
const CANCEL_REASONS = ["no_longer_needed", "ordered_by_mistake", "other"];
const order = (isNeeded) => ({ name: "order_id", isNeeded });
const part = (name, label, autocomplete, most, isNeeded = true) =>
  ({ name: `address.${name}`, label, autocomplete, most, isNeeded });

const FORMS = {
  find_orders: [{ ...order(false), hint: "orderNumberHint" }],
  refund_order: [
    { ...order(true), takesLines: true },
    { name: "reason", label: "reason", isNeeded: true, options: REFUND_REASONS },
    { name: "amount", label: "amount", hint: "amountHint", most: 16, mode: "decimal" },
  ],
  cancel_order: [order(true), { name: "reason", label: "reason", isNeeded: true, options: CANCEL_REASONS }],
  change_address: [
    order(true),
    part("name", "addressName", "name", 100),
    part("line1", "addressLine1", "address-line1", 120),
    part("line2", "addressLine2", "address-line2", 120, false),
    part("postal_code", "addressPostalCode", "postal-code", 20),
    part("city", "addressCity", "address-level2", 80),
    part("region", "addressRegion", "address-level1", 80, false),
    { ...part("country", "addressCountry", "country", 2), hint: "addressCountryHint" },
  ],
};
export const CHOICES = Object.keys(FORMS);
const ICONS = { find_orders: "parcel", refund_order: "back", cancel_order: "cross", change_address: "pin" };

export class Forms {
  constructor({ root, button, own, mentioned, onOpened, onSubmit, send, onClosed }) {
    Object.assign(this, { root, button, own, mentioned, onOpened, onSubmit, send, onClosed });
    this.chosen = "";
    this.isOffered = false; // by us, because the assistant is away
    this.sent = null;
    button.addEventListener("click", () => (root.hidden ? this.open() : this.close()));
    root.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      this.close();
    });
  }

  get isOpen() {
    return !this.root.hidden;
  }

  open({ isOffered = false } = {}) {
    this.isOffered = isOffered;
    this.chosen = "";
    this.sent = null;
    this.root.hidden = false;
    this.button.setAttribute("aria-expanded", "true");
    this.draw();
    this.onOpened();
    if (!isOffered) this.root.querySelector(".choice").focus();
  }

  close() {
    if (!this.isOpen) return;
    const hadFocus = this.root.contains(document.activeElement) || Boolean(this.sent && this.sent.hadFocus);
    this.root.hidden = true;
    this.chosen = "";
    this.sent = null;
    this.root.replaceChildren();
    this.button.setAttribute("aria-expanded", "false");
    this.onClosed(hadFocus);
  }

  draw() {
    const body = this.chosen ? this.form() : this.choices();
    this.root.replaceChildren(this.head(), ...body);
  }

  /* The same in another language: what was chosen and written stays, and so does the focus. */
  redraw() {
    const controls = () => [...this.root.querySelectorAll("button, input, select")];
    const focused = controls().indexOf(document.activeElement);
    const written = this.chosen ? [...this.root.querySelector("form").elements].filter(isWritten) : [];
    const kept = this.chosen && this.picker.kept();
    this.draw();
    if (kept) this.picker.restore(kept);
    for (const { id, value } of written) document.getElementById(id).value = value;
    if (this.isUnderWay) this.busy(true);
    controls()[focused]?.focus();
  }

  head() {
    const title = this.chosen ? `form_${this.chosen}` : "needs";
    return el("div", { class: "needs-head" },
      this.chosen ? el("button", { class: "icon", type: "button", "aria-label": t("backToChoices"), on: { click: () => this.choose("") } }, icon("left")) : null,
      el("h2", { id: "needs-title", text: t(title) }),
      el("button", { class: "icon", type: "button", "aria-label": t("closeForm"), on: { click: () => this.close() } }, icon("cross")));
  }

  choices() {
    return [
      this.isOffered ? el("p", { class: "away", role: "status", text: t("assistantAway") }) : null,
      el("ul", { class: "choices" }, ...CHOICES.map((name) => el("li", {},
        el("button", { class: "choice", type: "button", on: { click: () => this.choose(name) } },
          icon(ICONS[name]), el("span", { text: t(`form_${name}`) }))))),
    ].filter(Boolean);
  }

  choose(name) {
    this.chosen = name;
    this.sent = null;
    this.draw();
    const first = this.root.querySelector(name ? "form input, form select" : ".choice");
    first.focus();
  }

  form() {
    const fields = FORMS[this.chosen].flatMap((field) =>
      (field.name === "order_id" ? this.pickOrder(field) : [this.field(field)]));
    const form = el("form", { class: "fields", novalidate: true, on: { submit: (event) => this.submit(event) } },
      ...fields,
      el("p", { class: "fate is-bad", role: "alert", hidden: true }),
      this.chosen === "find_orders" ? null : el("p", { class: "small", text: t("formNothingYet") }),
      el("button", { class: "yes", type: "submit", text: t(this.chosen === "find_orders" ? "formLookUp" : "formGoOn") }));
    form.addEventListener("input", (event) => {
      // What is under way stays what it was; what is filled in otherwise after a refusal is another.
      if (!this.isUnderWay) this.sent = null;
      this.clear(event.target);
    });
    return [form];
  }

  pickOrder({ isNeeded, hint, takesLines }) {
    this.picker = new OrderPicker({
      own: this.own, mentioned: this.mentioned, isNeeded, takesLines, hint: hint && t(hint), onPart: (isPart) => this.without("amount", isPart),
    });
    return this.picker.elements;
  }

  /* What single lines cost is worked out from the order. */
  without(name, isWithout) {
    const field = this.root.querySelector(`[data-field="${name}"]`);
    if (!field) return;
    field.hidden = isWithout;
    field.querySelector("input").disabled = isWithout;
  }

  /* The customer's orders have come, or it is known that they will not. */
  ordersCame() {
    if (this.isOpen && this.chosen) this.picker.refresh();
  }

  field(field) {
    const id = `field-${field.name.replace(".", "-")}`;
    const hint = field.hint ? el("p", { class: "small", id: `${id}-hint`, text: t(field.hint) }) : null;
    const shared = { id, name: field.name, required: field.isNeeded,
      "aria-describedby": field.hint ? `${id}-hint` : null, data: { hint: field.hint ? `${id}-hint` : "" } };
    const control = field.options
      ? el("select", shared, el("option", { value: "", text: t("pleaseChoose") }),
          ...field.options.map((value) => el("option", { value, text: t(`reason_${value}`) })))
      : el("input", { ...shared, type: "text", dir: "auto", maxlength: field.most, inputmode: field.mode,
          autocomplete: field.autocomplete || "off" });
    const label = field.isNeeded ? t(field.label) : `${t(field.label)} (${t("optional")})`;
    return el("div", { class: "field", data: { field: field.name } },
      el("label", { for: id, text: label }), control, hint, fault(field.name));
  }

  submit(event) {
    event.preventDefault();
    const form = event.target;
    const missing = [...form.elements].filter(({ name, required, value }) => name && required && !value.trim());
    const faults = { ...this.picker.faults(), ...Object.fromEntries(missing.map(({ name }) => [name, t("fieldNeeded")])) };
    if (this.blameAll(faults)) return;
    // The same form again is the same request, so trying again is harmless.
    const hadFocus = form.contains(document.activeElement); // a button that is switched off loses it
    this.sent = this.onSubmit({ id: this.sent && this.sent.id, tool: this.chosen, arguments: { ...filled(form), ...this.picker.values() } });
    this.sent.hadFocus = hadFocus;
    this.busy(this.sent.isSent);
    this.sent.isUnsaid = !this.sent.isSent;
    if (this.sent.isUnsaid) this.complain(t("reconnecting"));
  }

  /* The service has taken it: the conversation shows the rest. */
  taken(ref) {
    if (this.sent && this.sent.id === ref) this.close();
  }

  refused(frame) {
    if (!this.sent || this.sent.id !== frame.ref) return;
    this.sent.isSent = false;
    this.busy(false);
    const named = Object.keys(frame.faults || {}).map((name) => [name.startsWith("items.") ? "items" : name, t("fieldWrong")]);
    if (!this.blameAll(Object.fromEntries(named))) this.complain(frame.message);
  }

  /* Its line went: it may have been taken or not. */
  lost() {
    if (this.sent?.isSent) this.sent = { ...this.sent, isSent: false, isLost: true };
  }

  /* There is a line again. What was lost goes once more, as the same request. */
  giveAgain() {
    if (!this.sent) return;
    const { isLost, isUnsaid, frame } = this.sent;
    if (isLost) this.sent.isSent = this.send(frame);
    if (this.sent.isSent) this.sent.isLost = false;
    else if (isUnsaid) this.root.querySelector("form > .fate").hidden = true;
  }

  get isUnderWay() {
    return Boolean(this.sent && (this.sent.isSent || this.sent.isLost));
  }

  busy(isBusy) {
    const button = this.root.querySelector("form .yes");
    button.disabled = isBusy;
    button.textContent = t(isBusy ? "sending" : this.chosen === "find_orders" ? "formLookUp" : "formGoOn");
  }

  complain(text) {
    const alert = this.root.querySelector("form > .fate");
    alert.textContent = text;
    alert.hidden = false;
  }

  /* Say at each field what is wrong with it, and go to the first. False when there is nothing to say. */
  blameAll(faults) {
    const blamed = Object.entries(faults).filter(([name, text]) => this.blame(name, text));
    if (blamed.length) this.root.querySelector("[aria-invalid]").focus();
    return blamed.length > 0;
  }

  blame(name, text) {
    const field = this.root.querySelector(`[data-field="${CSS.escape(name)}"]`);
    if (!field) return false;
    const controls = [...field.querySelectorAll("input, select")].filter((control) => control.getClientRects().length);
    const odd = controls.find((one) => one.type === "number" && !one.checkValidity());
    const control = field.matches("fieldset") ? odd || controls.find(({ type }) => type === "checkbox") || controls[0] : controls.at(-1);
    const told = field.querySelector(".fault");
    control.setAttribute("aria-invalid", "true");
    control.setAttribute("aria-describedby", [told.id, control.dataset.hint].filter(Boolean).join(" "));
    told.textContent = text;
    told.hidden = false;
    return true;
  }

  clear(touched) {
    const field = touched.closest(".field");
    if (!field) return;
    for (const control of field.querySelectorAll("[aria-invalid]")) {
      control.removeAttribute("aria-invalid");
      if (control.dataset.hint) control.setAttribute("aria-describedby", control.dataset.hint);
      else control.removeAttribute("aria-describedby");
    }
    field.querySelector(".fault").hidden = true;
  }
}

/* A field of the form's own; the order's part looks after itself. */
function isWritten({ name, type }) {
  return Boolean(name) && type !== "radio";
}

/* What was filled in, with the parts of an address under it. The order's part the picker knows. */
function filled(form) {
  const values = {};
  for (const { name, value, type, disabled } of form.elements) {
    if (!isWritten({ name, type }) || disabled || !value.trim()) continue;
    const text = value.trim();
    const [group, inner] = name.split(".");
    if (inner) values[group] = { ...values[group], [inner]: inner === "country" ? text.toUpperCase() : text };
    else values[name] = text;
  }
  return values;
}

/* Which order, and of a refund which of its lines: chosen from the customer's own orders where these
   are known, written where they are not or where the order is not among them. */

import { el } from "./dom.js";
import { t } from "./strings.js";

const OTHER = "*"; // no order is called so
const MAX_NUMBER = 40;

export class OrderPicker {
  constructor({ own, mentioned, isNeeded, hint, takesLines, onPart }) {
    Object.assign(this, { own, mentioned, isNeeded, hint, onPart });
    this.order = el("div", { class: "field", data: { field: "order_id" } });
    this.lines = el("fieldset", { class: "field", data: { field: "items" }, hidden: true });
    this.elements = takesLines ? [this.order, this.lines] : [this.order];
    this.rows = [];
    this.isPart = false;
    this.draw();
  }

  /* The orders have come, or will not, or come in another language. What was chosen or written stays. */
  refresh() {
    const { orders } = this.own();
    if (this.select ? !orders.length || orders === this.drawn : this.input.value.trim()) return;
    const focused = this.controls().indexOf(document.activeElement);
    const kept = this.kept();
    const hadChoice = Boolean(this.select);
    this.draw();
    this.restore(kept);
    if (focused < 0) return;
    (hadChoice ? this.controls()[focused] : this.select || this.input)?.focus();
  }

  controls() {
    return this.elements.flatMap((part) => [...part.querySelectorAll("input, select")]);
  }

  /* What was chosen and written, for `restore` to put back once this has been drawn anew. */
  kept() {
    const rows = this.rows.map(({ item, box, count }) => [item.item_id, { isChosen: box.checked, many: count?.value }]);
    return { order: this.select?.value, written: this.input.value, isPart: this.isPart, rows: new Map(rows) };
  }

  restore({ order, written, isPart, rows }) {
    this.input.value = written;
    if (!this.select || !order) return;
    this.select.value = [...this.select.options].some(({ value }) => value === order) ? order : "";
    this.show();
    if (!isPart || !this.rows.length) return;
    this.lines.querySelector("input[value=part]").checked = true;
    this.turn(true);
    for (const { item, box, count } of this.rows) {
      const before = rows.get(item.item_id);
      if (before) box.checked = before.isChosen;
      if (before && count && before.many) count.value = before.many;
    }
  }

  draw() {
    const { orders, isAway } = this.own();
    this.drawn = orders;
    this.select = null;
    if (orders.length) this.drawChoice(orders);
    else this.order.replaceChildren(...this.text(isAway ? t("ordersNotShown") : this.hint), fault("order_id"));
  }

  drawChoice(orders) {
    const option = (value, text) => el("option", { value, text });
    this.select = el("select", { id: "field-order", "aria-required": this.isNeeded ? "true" : null,
      "aria-describedby": "field-order-hint", data: { hint: "field-order-hint" }, on: { change: () => this.chosen() } },
      option("", t(this.isNeeded ? "pleaseChoose" : "allOrders")),
      ...orders.map((order) => option(order.order_id, `${order.order_id} · ${order.status_text} · ${order.total_text}`)),
      option(OTHER, t("otherOrder")));
    this.inside = el("p", { class: "small", id: "field-order-hint", dir: "auto", hidden: true });
    this.other = el("div", { class: "field-part", hidden: true }, ...this.text(""));
    this.order.replaceChildren(el("label", { for: "field-order", text: t("order") }), this.select, this.inside,
      this.other, fault("order_id"));
  }

  text(hint) {
    this.input = el("input", { id: "field-order_id", type: "text", dir: "auto", maxlength: MAX_NUMBER,
      autocomplete: "off", list: "known-orders", "aria-required": this.isNeeded ? "true" : null,
      "aria-describedby": hint ? "field-order_id-hint" : null, data: { hint: hint ? "field-order_id-hint" : "" } });
    const label = this.isNeeded || this.select ? t("orderNumber") : `${t("orderNumber")} (${t("optional")})`;
    return [
      el("label", { for: "field-order_id", text: label }),
      this.input,
      el("datalist", { id: "known-orders" }, ...this.mentioned().map((id) => el("option", { value: id }))),
      hint ? el("p", { class: "small", id: "field-order_id-hint", text: hint }) : null,
    ].filter(Boolean);
  }

  chosen() {
    this.show();
    if (this.isOther) this.input.focus();
  }

  show() {
    const order = this.own().orders.find((one) => one.order_id === this.select.value);
    this.other.hidden = !this.isOther;
    this.inside.textContent = order ? order.items.map(nameOf).join(", ") : "";
    this.inside.hidden = !order;
    this.offerLines(order);
  }

  /* Whole or in part: a question only where there is more than one piece left. */
  offerLines(order) {
    const left = order ? order.items.filter((item) => item.left > 0) : [];
    const pieces = left.reduce((sum, item) => sum + item.left, 0);
    this.rows = pieces > 1 ? left.map((item) => row(item, left.length === 1)) : [];
    this.lines.hidden = !this.rows.length;
    this.list = el("ul", { class: "pick", hidden: true }, ...this.rows.map(({ element }) => element));
    const scope = (value, text, isChecked) => el("label", { class: "tick" },
      el("input", { type: "radio", name: "scope", value, checked: isChecked, on: { change: () => this.turn(value === "part") } }),
      el("span", { text }));
    this.lines.replaceChildren(el("legend", { text: t("refundWhat") }),
      scope("whole", t("refundWhole"), true), scope("part", t("refundPart"), false), this.list, fault("items"));
    this.turn(false);
  }

  turn(isPart) {
    this.isPart = isPart;
    this.list.hidden = !isPart;
    this.onPart(isPart);
  }

  get isOther() {
    return Boolean(this.select) && this.select.value === OTHER;
  }

  get id() {
    return this.select && !this.isOther ? this.select.value : this.input.value.trim();
  }

  get items() {
    return this.rows.filter(({ box }) => box.checked)
      .map(({ item, count }) => ({ item_id: item.item_id, quantity: count ? Number(count.value) : 1 }));
  }

  values() {
    return { ...(this.id ? { order_id: this.id } : {}), ...(this.isPart ? { items: this.items } : {}) };
  }

  /* What is not filled in as it must be: the names of fields, each with what is wrong. */
  faults() {
    const found = {};
    if ((this.isNeeded || this.isOther) && !this.id) found.order_id = t("fieldNeeded");
    if (!this.isPart) return found;
    const isOdd = this.rows.some(({ box, count }) => box.checked && count && !count.checkValidity());
    if (!this.items.length) found.items = t("chooseSome");
    else if (isOdd) found.items = t("fieldWrong");
    return found;
  }
}

function row(item, isOnly) {
  const box = el("input", { type: "checkbox", checked: isOnly });
  const count = item.left > 1
    ? el("input", { type: "number", inputmode: "numeric", min: 1, max: item.left, step: 1, required: true, value: item.left,
        "aria-label": t("howMany", { title: nameOf(item) }), on: { input: () => { box.checked = true; } } })
    : null;
  const element = el("li", {},
    el("label", { class: "tick" }, box, el("span", { dir: "auto", text: nameOf(item) })),
    el("span", { class: "price", text: item.unit_text }),
    count ? el("span", { class: "many" }, count, el("span", { text: t("ofLeft", { count: item.left }) })) : null);
  return { item, box, count, element };
}

function nameOf({ title, variant }) {
  return variant ? `${title} (${variant})` : title;
}

export function fault(name) {
  return el("p", { class: "fault", id: `field-${name.replace(".", "-")}-fault`, hidden: true });
}

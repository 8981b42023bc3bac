/* Making elements. Text goes in as text, never as markup. */

const SVG = "http://www.w3.org/2000/svg";

export function el(name, { class: className, text, on, data, ...attributes } = {}, ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  for (const [attribute, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(attribute, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(attribute, value);
  }
  for (const [key, value] of Object.entries(data || {})) made.dataset[key] = value;
  for (const [event, handler] of Object.entries(on || {})) made.addEventListener(event, handler);
  made.append(...children.filter(Boolean));
  return made;
}

const PATHS = {
  check: "M5 12.5l4.5 4.5L19 7.5",
  cross: "M7 7l10 10M17 7L7 17",
  clock: "M12 7v5l3 2M12 3.5a8.5 8.5 0 1 0 0 17 8.5 8.5 0 0 0 0-17Z",
  people: "M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7ZM3 19c.6-3 3-5 6-5s5.4 2 6 5M15.5 4.3a3.5 3.5 0 0 1 0 6.4M17 14.3c2 .6 3.5 2.3 4 4.7",
};

export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", PATHS[name]);
  svg.append(path);
  return svg;
}

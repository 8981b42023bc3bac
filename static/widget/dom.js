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
  left: "M14.5 6l-6 6 6 6",
  parcel: "M4 8l8-4 8 4v8l-8 4-8-4V8ZM4 8l8 4 8-4M12 12v8",
  back: "M9 8H5V4M5 8a8 8 0 1 1-1 6",
  pin: "M12 21c4-4.5 6.5-7.6 6.5-11a6.5 6.5 0 1 0-13 0c0 3.4 2.5 6.5 6.500 11ZM12 12.2a2.2 2.2 0 1 0 0-4.4 2.2 2.2 0 0 0 0 4.4Z",
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

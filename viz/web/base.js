// The few helpers that make elements. Text only ever goes in through textContent and setAttribute.

const SVG = "http://www.w3.org/2000/svg";
let serial = 0;

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") node.textContent = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) if (child) node.append(child);
  return node;
}

/**
 * An HTML element: el("p", {class: "x", text: "…", onclick: f}, child, …).
 * @type {(name: string, attributes?: object, ...children: any[]) => any}
 */
export const el = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);

/**
 * An SVG element, made in the same way.
 * @type {(name: string, attributes?: object, ...children: any[]) => any}
 */
export const svgEl = (name, attributes, ...children) => fill(document.createElementNS(SVG, name), attributes, children);

/**
 * Set several attributes; null removes one.
 * @type {(node: any, attributes: object) => any}
 */
export function setAttributes(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) node.removeAttribute(name);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  return node;
}

/**
 * Write a text only if it differs, because writing the same text again still costs a layout.
 * @type {(node: Node, text: string) => void}
 */
export const writeText = (node, text) => { if (node.textContent !== text) node.textContent = text; };

/**
 * A setter of an element's attributes that skips values which are already set; null removes an attribute.
 * @type {(node: Element) => (name: string, value: string | number | null) => void}
 */
export function attributeKeeper(node) {
  const held = new Map();
  return function (name, value) {
    if (held.get(name) === value) return;
    held.set(name, value);
    if (value === null) node.removeAttribute(name); else node.setAttribute(name, String(value));
  };
}

/**
 * The element that an event is about; null where it is about none.
 * @type {(event: Event) => HTMLElement | SVGElement | null}
 */
export const targetOf = ({ target }) => (target instanceof HTMLElement || target instanceof SVGElement ? target : null);

/**
 * The element of this selector; null where there is none.
 * @type {(selector: string, within?: ParentNode) => any}
 */
export const find = (selector, within = document) => within.querySelector(selector);

/**
 * Call `hear` with the element of this selector, now or as soon as it is in the page, unless the signal comes before.
 * @type {(selector: string, hear: (element: any) => void, signal?: AbortSignal) => void}
 */
export function whenThere(selector, hear, signal) {
  const now = find(selector);
  if (now) { hear(now); return; }
  const watcher = new MutationObserver(() => {
    const element = find(selector);
    if (!element) return;
    watcher.disconnect();
    hear(element);
  });
  watcher.observe(document.body, { childList: true, subtree: true });
  signal?.addEventListener("abort", () => watcher.disconnect());
}

/**
 * Call `hear` as soon as the element has room on the screen: its tab is the open one. Not after the signal.
 * @type {(element: HTMLElement, hear: () => void, signal?: AbortSignal) => void}
 */
export function whenShown(element, hear, signal) {
  const watcher = new ResizeObserver(() => {
    if (!element.clientWidth) return;
    watcher.disconnect();
    hear();
  });
  watcher.observe(element);
  signal?.addEventListener("abort", () => watcher.disconnect());
}

/** @type {(word: string) => string} */
export const freshId = (word) => `ds-${word}-${++serial}`;
/** @type {(value: number, low: number, high: number) => number} */
export const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
/** @type {() => boolean} */
export const stillWanted = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/**
 * Whether the screen is a touch screen, or as narrow as a phone's, where nobody presses keys.
 * @type {() => boolean}
 */
export const fingers = () => matchMedia("(pointer: coarse), (max-width: 520px)").matches;

/**
 * Merge many calls into one drawing per frame.
 * @param {() => void} draw
 */
export function coalesce(draw) {
  let asked = 0;
  const run = () => { asked = 0; draw(); };
  const ask = () => { if (!asked) asked = requestAnimationFrame(run); };
  ask.now = () => { if (asked) cancelAnimationFrame(asked); run(); };
  ask.stop = () => { if (asked) cancelAnimationFrame(asked); asked = 0; };
  return ask;
}

/**
 * Call `to` with each event of the pointer that is held down on an element, from the press on.
 * @type {(element: any, to: (event: PointerEvent) => void) => void}
 */
export function whileHeld(element, to) {
  let held = false;
  element.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    held = true;
    element.setPointerCapture(event.pointerId);
    to(event);
  });
  element.addEventListener("pointermove", (event) => { if (held) to(event); });
  for (const end of ["pointerup", "pointercancel"]) element.addEventListener(end, () => { held = false; });
}

/**
 * Set data-middle, data-narrow and data-phone by the width of the view. Returns a function that stops watching.
 * @type {(root: HTMLElement) => () => void}
 */
export function followWidth(root) {
  const watcher = new ResizeObserver(() => {
    const width = root.clientWidth;
    setAttributes(root, { "data-middle": width < 1100, "data-narrow": width < 860, "data-phone": width < 520 });
  });
  watcher.observe(root);
  return () => watcher.disconnect();
}

/**
 * Inside Gradio a class on body sets the theme; elsewhere the reader's system does. Returns a function that stops
 * following.
 * @type {(root: HTMLElement) => () => void}
 */
export function followTheme(root) {
  if (!root.closest(".gradio-container")) return () => {};
  const apply = () => root.setAttribute("data-theme", document.body.classList.contains("dark") ? "dark" : "light");
  const watcher = new MutationObserver(apply);
  watcher.observe(document.body, { attributes: true, attributeFilter: ["class"] });
  apply();
  return () => watcher.disconnect();
}

// The examples in one slim row, as a set of radio buttons. The value is the chosen example's name.
// The row shows as many whole cards as fit; arrows before them, which stay in their places, bring the others.
// Examples of a group stand apart, behind its name, which opens a list of all of them.
/** @import { Component } from "./types.d.ts" */
import { el, freshId, targetOf } from "../../viz/web/base.js";
import { plural } from "../../viz/web/words.js";

const PAUSE = 250;   // ms: who walks through the examples with the arrow keys does not ask for each

/**
 * How many of the widths, from the one at `first` on, fit into the room with this gap between them; at least one.
 * @type {(widths: number[], first: number, room: number, gap: number) => number}
 */
export function fitting(widths, first, room, gap) {
  let used = 0, count = 0;
  for (let i = first; i < widths.length && used + widths[i] <= room; i++, count++) used += widths[i] + gap;
  return Math.max(1, count);
}

/**
 * c.props.cards: [{name, title, look_for, group}]; the first group has the name "".
 * @type {(c: Component) => void}
 */
export function cards(c) {
  const GAP = 6, EDGE = 6;
  const group = freshId("cards"), radios = new Map(), groupOf = new Map();
  let timer = 0, first = 0, count = 1;
  function choose(name) {
    reveal(radios.get(name).parentElement);
    clearTimeout(timer);
    timer = setTimeout(() => { c.props.value = name; show(); c.trigger("chosen"); }, PAUSE);
  }
  const cardOf = ({ name, title, look_for: lookFor, group: among = "" }) => {
    const radio = el("input",
      { type: "radio", name: group, value: name, "aria-label": title, onchange: () => choose(name),
        onfocus: () => reveal(radio.parentElement) });
    radios.set(name, radio);
    const label = el("label", { class: "pg-card", "data-card": name, title: `Look for: ${lookFor}` }, radio,
      el("span", { text: title }));
    groupOf.set(label, among);
    return label;
  };
  const all = c.props.cards.map(cardOf), strip = el("div", { class: "pg-card-strip" }, ...all);
  let labels = all;                                          // those of the group that is shown
  const grouped = [...groupOf.values()].filter(Boolean).length;
  const names = [...new Set(groupOf.values())].map((among) => el("button",
    { type: "button", class: "pg-cards-name", "data-group": among,
      text: among || plural(all.length - grouped, "example"),
      onclick: () => (among === groupOf.get(labels[0]) ? list(!row.hasAttribute("data-open")) : enter(among)) }));
  const arrow = (text, label, by) => el("button",
    { type: "button", class: "pg-tool pg-cards-turn", "aria-label": label, title: label, text,
      onclick: () => turn(by) });
  const back = arrow("‹", "Examples before these", -1), on = arrow("›", "More examples", 1);
  const row = el("fieldset", { class: "pg-cards" }, el("legend", { class: "pg-hidden", text: "Examples" }),
    ...names, back, on, strip);
  c.element.append(row);
  strip.addEventListener("click", (event) => { if (event.detail) list(false); });   // arrow keys walk on in the list
  row.addEventListener("keydown", (event) => { if (event.key === "Escape") list(false); });
  document.addEventListener("pointerdown", (event) => { if (!row.contains(targetOf(event))) list(false); });

  /** Show all cards of the group below the row, or again as many as fit into it. */
  function list(whole) {
    if (whole === row.hasAttribute("data-open")) return;
    row.toggleAttribute("data-open", whole);
    for (const name of names) name.setAttribute("aria-expanded", String(whole && name.ariaPressed === "true"));
    if (!whole) lay();
  }

  /** Scroll to the first card. A strip that has become narrower can be scrolled further only once it is laid out. */
  const place = () => { strip.scrollLeft = labels[first].offsetLeft - EDGE / 2; };

  /** Show the cards from `first` on, as many as fit whole. */
  function lay() {
    if (row.hasAttribute("data-open")) return;
    const others = [...names, back, on].reduce((sum, one) => sum + (one.offsetWidth && one.offsetWidth + GAP), 0);
    const room = row.clientWidth - others - EDGE, widths = labels.map((card) => card.offsetWidth);
    if (room <= 0) return;
    const whole = fitting(widths, 0, room, GAP) >= labels.length;
    if (whole) first = 0;
    count = fitting(widths, first, room, GAP);
    const last = labels[first + count - 1];
    strip.style.width = `${last.offsetLeft + last.offsetWidth - labels[first].offsetLeft + EDGE}px`;
    place();
    back.disabled = first === 0;
    on.disabled = first + count >= labels.length;
    back.hidden = on.hidden = whole;
  }

  /** Show the next cards, or the ones before, so that the card before the first comes to stand last. */
  function turn(by) {
    const end = first;
    first = by > 0 ? Math.min(first + count, labels.length - 1) : 0;
    lay();
    if (by < 0) while (first + count < end) { first++; lay(); }
  }

  /** Show the cards of this group. */
  function open(among) {
    for (const card of all) card.hidden = groupOf.get(card) !== among;
    for (const name of names) name.setAttribute("aria-pressed", String(name.dataset.group === among));
    labels = all.filter((card) => !card.hidden);
    first = 0;
    lay();
  }

  /** Show the cards of this group, and choose the first, so that the picture is not that of another model. */
  function enter(among) {
    list(false);
    open(among);
    choose(labels[0].dataset.card);
  }

  /** Bring a card into view within the row; the page stays where it is. */
  function reveal(card) {
    if (card.hidden) open(groupOf.get(card));
    const at = labels.indexOf(card);
    if (at < first) first = at;
    lay();
    while (at >= first + count) { first++; lay(); }
  }

  function show() {
    const radio = radios.get(c.props.value);
    for (const one of radios.values()) one.checked = one === radio;
    if (radio) reveal(radio.parentElement);
    else lay();                                             // none is bold any more
  }

  /** Lay the row out anew. A chosen card stays in view, though it becomes bold, and so wider. */
  function resize() {
    const at = labels.findIndex((card) => card.firstChild.checked), seen = at >= first && at < first + count;
    lay();
    if (seen) reveal(labels[at]);
  }
  const watcher = new ResizeObserver(resize);
  for (const one of [row, ...all]) watcher.observe(one);
  new ResizeObserver(place).observe(strip);
  open("");
  c.watch("value", show);
  show();
}

// Exhibits: the data of a step that its method chooses to show, one renderer per kind (exhibit-*.js). The code here is
// the same for all methods.
/** @import { Exhibit } from "./types.d.ts" */
import { coalesce, el, freshId, setAttributes } from "./base.js";
import { shortText } from "./cells.js";
import { cloudsExhibit } from "./exhibit-clouds.js";
import { curveExhibit } from "./exhibit-curve.js";
import { gaugeExhibit } from "./exhibit-gauge.js";
import { latticeExhibit } from "./exhibit-lattice.js";
import { layersExhibit } from "./exhibit-layers.js";
import { matrixExhibit } from "./exhibit-matrix.js";
import { tableExhibit } from "./exhibit-table.js";
import { plainLines, wordsExhibit } from "./exhibit-words.js";

/**
 * What draws each kind: an exhibit in, {content, summary?, wide?, keys?, hint?, left?} out. It throws at a malformed
 * one.
 */
const EXHIBITS = {
  clouds: cloudsExhibit, curve: curveExhibit, gauge: gaugeExhibit, lattice: latticeExhibit, layers: layersExhibit,
  matrix: matrixExhibit, table: tableExhibit, words: wordsExhibit,
};
const MOST = 16;                                   // exhibits drawn of one step
const LOW = new Set(["gauge", "layers", "words"]);
const EMPTY = Object.freeze([]);

/** The exhibits of a step, in order. */
const exhibitsOf = (step) => (step && step.drafter && Array.isArray(step.drafter.exhibits)
  ? step.drafter.exhibits : EMPTY);

/**
 * How much room a step's exhibits need: 0 none, 1 a low card, 2 a tall one.
 * @type {(exhibits: readonly Exhibit[]) => number}
 */
export function roomOf(exhibits) {
  if (!exhibits.length) return 0;
  const low = exhibits.length <= 3 && exhibits.every((one) => one && LOW.has(one.kind)
    && (one.kind !== "words" || (Array.isArray(one.lines) && one.lines.length <= 3)));
  return low ? 1 : 2;
}

/** {content, summary?, wide?, keys?, hint?, left?} of one exhibit; lines of text if it is unknown or malformed. */
function render(exhibit) {
  const kind = exhibit && typeof exhibit === "object" ? exhibit.kind : "";
  if (typeof kind === "string" && Object.hasOwn(EXHIBITS, kind)) {
    try { return EXHIBITS[kind](exhibit); } catch { /* malformed: plain words */ }
  }
  return wordsExhibit({ lines: plainLines(exhibit) });
}

function figure(exhibit) {
  const { content, summary, wide, keys, hint, left } = render(exhibit), { title, note, kind } = Object(exhibit);
  const name = shortText(title) || shortText(kind, 40) || "exhibit", told = shortText(note, 400);
  const more = left ? `Not all of it is drawn: ${left}.` : "";
  const box = el("div", { class: "ds-exhibit-box" }, content);
  if (wide) setAttributes(box,
    { tabindex: 0, role: "group", "aria-label": [name, summary, keys && hint].filter(Boolean).join(". ") });
  if (keys) box.addEventListener("keydown", keys);
  // reading it later would cost a layout
  box.addEventListener("scroll", () => { box.dataset.left = box.scrollLeft; }, { passive: true });
  return el("figure", { class: "ds-exhibit", "data-kind": shortText(kind, 40) }, el("figcaption", { text: name }), box,
    summary && el("p", { class: "ds-unseen", text: summary }), told && el("p", { class: "ds-quiet", text: told }),
    more && el("p", { class: "ds-quiet", text: more }));
}

/**
 * Exhibits that belong to no step: figures in a row.
 * @type {(exhibits: Exhibit[]) => HTMLElement}
 */
export const exhibitRow = (exhibits) => el("div", { class: "ds ds-figures-row" }, ...exhibits.map(figure));

/** A row of figures. Calling it redraws only the figures that changed; focus and sideways scrolling stay. */
function row(element) {
  let keys = [];
  return function (exhibits) {
    const next = exhibits.map((one) => JSON.stringify(one) || "");
    while (element.children.length > next.length) element.lastChild.remove();
    next.forEach((key, i) => {
      if (key === keys[i]) return;
      const old = element.children[i], fresh = figure(exhibits[i]);
      if (!old) { element.append(fresh); return; }
      const focused = old.contains(document.activeElement);
      const [was, now] = [old, fresh].map((one) => one.querySelector(".ds-exhibit-box"));
      old.replaceWith(fresh);
      if (was.dataset.left) now.scrollLeft = was.dataset.left;
      if (focused) now.focus({ preventScroll: true });
    });
    keys = next;
  };
}

const isMeter = (one) => Boolean(one) && one.meter === true;

/**
 * The card of a run. fold: closed until the reader opens it (a lane of a comparison). Returns {element, reset,
 * grow(model), draw(step), rest(still)}. The card is hidden in a run without exhibits and, while nothing moves, in a
 * step without exhibits (where it can be folded, it is one line high); otherwise it keeps one height. It is drawn at
 * most once per frame.
 * @param {{ fold?: boolean }} [options]
 */
export function exhibitCard({ fold } = {}) {
  const id = freshId("exhibits"), title = "This method, this step";
  const own = el("div", { class: "ds-exhibit-row" }), measured = el("div", { class: "ds-exhibit-row" });
  const nothing = el("p", { class: "ds-quiet", text: "Nothing to show in this step.", hidden: true });
  const unread = el("p", { class: "ds-quiet", text: "Not read in this step.", hidden: true });
  const meters = el("div", { class: "ds-meters", hidden: true }, el("h3", { text: "Meter" }), unread, measured);
  const body = el("div", { class: "ds-exhibits-body", tabindex: 0, role: "group", "aria-labelledby": id }, nothing, own,
    meters);
  const element = fold
    ? el("details", { class: "ds-exhibits", hidden: true, ontoggle: () => ask() }, el("summary", { id, text: title }),
      body)
    : el("section", { class: "ds-card ds-exhibits", hidden: true, "aria-labelledby": id },
      el("h2", { id, text: title }), body);
  const drawOwn = row(own), drawMeters = row(measured);
  let room = 0, counted = 0, wanted = null, shown = null, metered = false, owned = false, still = false;
  function show() {
    const empty = still && Boolean(wanted) && !exhibitsOf(wanted).length;
    element.hidden = !room || (empty && !fold);
    setAttributes(body, { "data-empty": empty });
  }

  function draw() {
    if (!room || wanted === shown || (fold && !element.open)) return;
    shown = wanted;
    const exhibits = exhibitsOf(wanted).slice(0, MOST);
    const plain = exhibits.filter((one) => !isMeter(one)), measures = exhibits.filter(isMeter);
    drawOwn(plain); drawMeters(measures);
    nothing.hidden = !wanted || exhibits.length > 0;
    unread.hidden = !wanted || measures.length > 0;
  }
  const ask = coalesce(draw);

  return {
    element,
    reset() {
      room = counted = 0;
      wanted = shown = null;
      metered = owned = false;
      element.hidden = meters.hidden = true;
      drawOwn(EMPTY);
      drawMeters(EMPTY);
      ask.stop();
    },
    /** Take in the steps that have arrived. They decide whether there is a card, and its height. */
    grow(model) {
      const before = room;
      for (; counted < model.steps.length; counted++) {
        const exhibits = exhibitsOf(model.steps[counted]);
        room = Math.max(room, roomOf(exhibits));
        metered = metered || exhibits.some(isMeter);
        owned = owned || !exhibits.every(isMeter);
      }
      if (!room) return;
      meters.hidden = !metered;
      setAttributes(body, { "data-meters": metered && !owned });
      if (room === before) return;
      show();
      body.setAttribute("data-room", room);
      ask();
    },
    draw(step) { wanted = step; show(); if (room) ask(); },
    /** now: true while the step shown stands still, false while steps follow one another. */
    rest(now) { still = now; show(); },
    stop: () => ask.stop(),
  };
}

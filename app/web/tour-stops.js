// The six stops of the tour: what each one lights, what it sets up, and how it notices that the reader did the task.
// Their words come from app/words.py.
import { openChange } from "./change.js";
import { find } from "../../viz/web/base.js";
import { stepToShow } from "../../viz/web/player.js";
import { wasKept } from "../../viz/web/trace.js";

function on(target, types, hear) {
  for (const type of types) target.addEventListener(type, hear, true);
  return () => { for (const type of types) target.removeEventListener(type, hear, true); };
}

/** Ways to notice an action. Each calls seen() whenever it happens and returns a function that stops looking. */
const SEE = {
  press: (selector, seen) => on(document, ["click", "keydown"], (event) => {
    if ((event.type === "click" || event.key === "Enter") && event.target.closest(selector)) seen();
  }),
  reach: (selector, seen) => on(document, ["pointermove", "focusin"], (event) => {
    if (event.target.closest(selector)) seen();
  }),
  change({ within, read }, seen) {
    const watched = document.querySelector(within);
    if (!watched) return () => {};
    let before = read(watched);
    const watcher = new MutationObserver(() => {
      const now = read(watched);
      if (now !== before) { before = now; seen(); }
    });
    watcher.observe(watched, { attributes: true, childList: true, characterData: true, subtree: true });
    return () => watcher.disconnect();
  },
};

const refusals = (step) => (step ? step.judgements.filter((judgement) => !wasKept(judgement)) : []);

const standStill = (view) => view.goto(view.step < 0 ? Infinity : view.step);

/**
 * spot: the element that is lit. ask: the first of these that exists is where the reader does the task. sides: where
 * the card may stand, best first. free: the element that the task changes, which the card should not hide.
 * prepare(view): brings the needed things onto the screen.
 */
export const TOUR_STOPS = {
  text: {
    spot: "#text", ask: ["#text [data-status='accepted']", "#text"], sides: ["above", "below"], free: "#tree",
    see: { press: "#text [data-index]" },
    prepare: (view) => view.goto(Infinity),
  },
  tree: {
    spot: ".ds-tree-card", ask: ["#tree [data-node][data-status='rejected']", "#tree [tabindex='0']"],
    sides: ["left", "below", "right", "above"],
    see: { press: "#tree [data-node][data-status='rejected']" },
    prepare(view) {
      view.goto(stepToShow(view.model.steps, view.step));
      view.select(-1);                                 // the choice is the reader's
    },
  },
  why: {
    spot: "#inspector", ask: ["#inspector .ds-term", "#inspector"], sides: ["left", "above", "below"],
    see: { reach: "#inspector .ds-term" },
    prepare(view) {
      standStill(view);
      const refused = refusals(view.model.steps[view.step]);
      if (refused.length && !document.querySelector("#tree [data-status='rejected'][data-selected]"))
        view.select(refused.reduce((a, b) => (b.q - b.p > a.q - a.p ? b : a)).node);
    },
  },
  timeline: {
    spot: ".ds-timeline-card", ask: ["#timeline"], sides: ["above", "below"],
    see: { change: { within: "#timeline", read: (line) => line.getAttribute("aria-valuenow") } },
    prepare: standStill,
  },
  drafter: {
    spot: "#drafter", ask: ["#drafter input"], sides: ["left", "above", "below"],
    see: { change: { within: "#options", read: (options) => (options.querySelector(".pg-summary") || options)
      .textContent } },
    prepare: openChange,
  },
  run: {
    spot: ".pg-buttons:has(#run)", ask: ["#run"], sides: ["below", "right", "above"],
    see: { press: "#run, #rooms [role=tab][data-tab-id='compare']" },
    prepare() {},
  },
};

/**
 * Look out for a stop's task; returns a function that stops looking.
 * @type {(stop: any, seen: () => void) => () => void}
 */
export function lookOut(stop, seen) {
  const ends = Object.entries(stop.see).map(([way, what]) => SEE[way](what, seen));
  return () => ends.forEach((end) => end());
}

/** @type {(selectors: string[]) => HTMLElement | null} */
export const findFirst = (selectors) => selectors.map((selector) => find(selector)).find(Boolean)
  || null;

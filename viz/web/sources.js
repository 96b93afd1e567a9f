// Which source each node of a merged tree comes from: a small mark on the node, a legend, and a filter that dims the
// other sources.
import { el, svgEl } from "./base.js";
import { shortText } from "./cells.js";

/** Outlines around (0, 0), told apart by shape because colours show status. The last is for all further sources. */
const MARKS = [
  ["circle", "M-4 0A4 4 0 1 0 4 0A4 4 0 1 0 -4 0Z"], ["triangle", "M0 -4.6L4.6 3.6H-4.6Z"],
  ["square", "M-3.7 -3.7H3.7V3.7H-3.7Z"],
  ["diamond", "M0 -5L5 0L0 5L-5 0Z"], ["plus", "M-1.6 -4.6H1.6V-1.6H4.6V1.6H1.6V4.6H-1.6V1.6H-4.6V-1.6H-1.6Z"],
  ["bar", "M-5 -2H5V2H-5Z"],
];
const groups = new Map();

/**
 * "context 17:20" and "context 24" are one source, "context"; "draft model" stays as it is.
 * @type {(source: string) => string}
 */
export function sourceGroup(source) {
  let group = groups.get(source);
  if (group === undefined) {
    group = String(source).replace(/\s+\d[\d\s:.,–-]*$/, "");
    if (groups.size > 5000) groups.clear();
    groups.set(source, group);
  }
  return group;
}

/** @type {(index: number, attributes: object) => Element} */
export const sourceMark = (index, attributes) =>
  svgEl("path", { class: "ds-source-mark", d: MARKS[Math.min(index, MARKS.length - 1)][1], ...attributes });

/**
 * The legend of a run's sources, hidden until one of its trees has more than one (merged). onPick(): the choice has
 * changed. In a merged run, of(step, node) is the index of the node's source, nameOf(step, node) its name, and
 * dims(step, node) whether another source is chosen.
 * @param {() => void} onPick
 */
export function makeSources(onPick) {
  const list = el("div", { class: "ds-sources", role: "group", "aria-label": "Sources of the draft", hidden: true },
    el("span", { text: "Drafted by" }));
  const known = new Map();
  let counted = 0, merged = false, chosen = null;

  const indexOf = (source) => Math.min(known.get(sourceGroup(source)) ?? MARKS.length - 1, MARKS.length - 1);
  function pick(index) {
    chosen = chosen === index ? null : index;
    list.querySelectorAll("button").forEach((button, i) => button.setAttribute("aria-pressed", String(i === chosen)));
    onPick();
  }
  function relabel() {
    const names = [...known.keys()], shown = names.slice(0, MARKS.length);
    if (names.length > MARKS.length) shown[MARKS.length - 1] = `${names.length - MARKS.length + 1} others`;
    list.replaceChildren(list.firstChild,
      ...shown.map((name, i) => el("button",
        { type: "button", class: "ds-source", "aria-pressed": String(i === chosen), title: "Show this source alone",
          onclick: () => pick(i) },
        svgEl("svg", { width: 14, height: 14, viewBox: "-7 -7 14 14", "aria-hidden": "true" }, sourceMark(i, {})),
        shortText(name, 32) || "no name")));
  }
  return {
    element: list,
    get merged() { return merged; },
    reset() { known.clear(); counted = 0; merged = false; chosen = null; list.hidden = true; },
    grow(model) {
      const before = known.size;
      let news = false;
      for (; counted < model.steps.length; counted++) {
        const own = new Set(model.steps[counted].nodes.source.map(sourceGroup));
        for (const group of own) if (!known.has(group)) known.set(group, known.size);
        if (own.size > 1 && !merged) { merged = news = true; list.hidden = false; }
      }
      if (merged && (news || known.size !== before)) relabel();
    },
    of: (step, node) => indexOf(step.nodes.source[node]),
    nameOf: (step, node) => shortText(sourceGroup(step.nodes.source[node]), 40),
    dims: (step, node) => chosen !== null && indexOf(step.nodes.source[node]) !== chosen,
  };
}

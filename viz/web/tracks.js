// Two or more tracks on a real clock, for steps whose work overlaps: one row per lane, with the step on the screen in
// the middle.
/** @import { Span, Step } from "./types.d.ts" */
import { el, svgEl, writeText } from "./base.js";
import { isNumber, shortText } from "./cells.js";
import { duration } from "./words.js";

const LANES = 6, ROW = 18, GAP = 5, MOST = 400, PARTS = new Set(["draft", "verify", "judge", "commit"]);

/**
 * The spans of a step that can be drawn: {lane, what, start, end}, in ms since the run began.
 * @type {(step: Step) => Span[]}
 */
export function spansOf(step) {
  const spans = step && Array.isArray(step.spans) ? step.spans.slice(0, MOST) : [];
  return spans.filter((span) => span && typeof span.lane === "string" && isNumber(span.start) && isNumber(span.end)
    && span.end >= span.start);
}

/**
 * Time in which more than one lane was at work: {start, end, both: ms, pieces: [[from, to]]}; null without spans.
 * @param {Span[]} spans
 */
export function overlap(spans) {
  if (!spans.length) return null;
  /** @type {[number, number, string][]} */
  const edges = spans.flatMap(({ lane, start, end }) => [[start, 1, lane], [end, -1, lane]]);
  edges.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const busy = new Map(), pieces = [];
  let since = null;
  for (const [at, by, lane] of edges) {
    const now = (busy.get(lane) || 0) + by;
    if (now) busy.set(lane, now); else busy.delete(lane);
    if (busy.size > 1 && since === null) since = at;
    if (busy.size < 2 && since !== null) { if (at > since) pieces.push([since, at]); since = null; }
  }
  return { start: edges[0][0], end: Math.max(...spans.map(({ end }) => end)),
    both: pieces.reduce((sum, [from, to]) => sum + to - from, 0), pieces };
}

const median = (numbers) => numbers.slice().sort((a, b) => a - b)[numbers.length >> 1];

export function makeTracks() {
  const names = el("div", { class: "ds-track-names", "aria-hidden": "true" }), bars = svgEl("g", {});
  const shade = svgEl("g", {});
  const svg = svgEl("svg", { class: "ds-track-bars", preserveAspectRatio: "none", "aria-hidden": "true" }, bars, shade);
  const words = el("p", { class: "ds-quiet ds-track-words" });
  const element = el("div", { class: "ds-tracks", role: "group", "aria-label": "Work that overlaps", hidden: true },
    names, svg, words);
  let lanes = [], steps = [], drawn = -2, usual = 1;     // steps: the spans of each

  /** The overlap during a step, in which work for its neighbours may run, too; null without spans. */
  function during(index) {
    const own = overlap(steps[index]);
    if (!own) return null;
    const near = steps.slice(Math.max(0, index - 1), index + 2).flat()
      .filter(({ start, end }) => end > own.start && start < own.end);
    return overlap(near.map((span) =>
      ({ ...span, start: Math.max(span.start, own.start), end: Math.min(span.end, own.end) }))) || own;
  }

  const rowOf = (lane) => Math.min(Math.max(0, lanes.indexOf(lane)), LANES - 1);
  function setRows() {
    const shown = lanes.slice(0, LANES);
    if (lanes.length > LANES) shown[LANES - 1] = "others";
    names.replaceChildren(...shown.map((lane) => el("span", { text: shortText(lane, 16) })));
    svg.style.height = `${shown.length * (ROW + GAP)}px`;
  }
  const rect = (from, to, y, height, marks) =>
    svgEl("rect", { x: from, width: Math.max(to - from, 0), y, height, ...marks });

  return {
    element,
    reset() {
      lanes = [];
      steps = [];
      drawn = -2;
      element.hidden = true;
      bars.replaceChildren();
      shade.replaceChildren();
    },
    /** Take the steps that have arrived; the tracks appear with the first overlap. */
    grow(model) {
      const before = lanes.length;
      if (steps.length === model.steps.length) return;
      while (steps.length < model.steps.length) {
        const spans = spansOf(model.steps[steps.length]);
        for (const { lane } of spans) if (!lanes.includes(lane) && lanes.length < 50) lanes.push(lane);
        const over = overlap([...(steps[steps.length - 1] || []), ...spans]);
        steps.push(spans);
        if (over && over.both > 0 && element.hidden) element.hidden = false;
      }
      if (lanes.length !== before) setRows();
      if (!element.hidden) usual = median(steps.map(overlap).filter(Boolean).map(({ start, end }) => end - start)) || 1;
    },
    draw(index) {
      if (element.hidden || index === drawn) return;
      drawn = index;
      const now = steps[index], over = now && during(index), sofar = over && overlap(steps.slice(0, index + 1).flat());
      bars.replaceChildren(); shade.replaceChildren();
      if (!over) { writeText(words, now ? "No clock was kept in this step." : ""); return; }
      const wide = Math.max(2.2 * usual, 1.15 * (over.end - over.start), 1e-6);
      const from = (over.start + over.end) / 2 - wide / 2;
      const high = Math.min(lanes.length, LANES) * (ROW + GAP);
      svg.setAttribute("viewBox", `0 0 ${wide} ${high}`);
      for (const [start, end] of over.pieces)
        shade.append(rect(start - from, end - from, 0, high, { class: "ds-overlap" }));
      for (let i = Math.max(0, index - 8); i <= Math.min(steps.length - 1, index + 8); i++) {
        for (const { lane, what, start, end } of steps[i]) {
          if (end < from || start > from + wide) continue;
          const bar = rect(start - from, Math.max(end - from, start - from + wide / 600), rowOf(lane) * (ROW + GAP) +
            GAP / 2, ROW, { "data-part": PARTS.has(what) ? what : PARTS.has(lane) ? lane : "other",
              "data-now": i === index });
          bar.append(svgEl("title", { text: `${shortText(what, 40)}: ${duration(end - start)}` }));
          bars.append(bar);
        }
      }
      writeText(words, `In this step ${duration(over.both)} of ${duration(over.end - over.start)} overlapped; up ` +
        `to here ${duration(sofar.both)} of ${duration(sofar.end - sofar.start)}.`);
    },
  };
}

// The figure beside the text of a screen: a finished run or race, a run of the reader's own, or an instrument. It is
// drawn by the same code as everywhere else.
/** @import { LessonHost } from "../view-types.d.ts" */
import { el } from "../base.js";
import { mountCompare } from "../compare.js";
import { exhibitRow } from "../exhibits.js";
import { lessonExperts } from "./experts.js";
import { lessonLength, lessonPasses } from "./length.js";
import { lessonRounds } from "./rounds.js";
import { lessonRule } from "./rule.js";
import { mountWatch } from "../watch.js";

const INSTRUMENTS = {
  rule: lessonRule, length: lessonLength, passes: lessonPasses, rounds: lessonRounds, experts: lessonExperts,
};
const CLOSE = 0.0101;   // a slider's step
const same = (a, b) => (Array.isArray(a) ? a.every((one, i) => same(one, b[i])) : typeof a === "number"
  ? Math.abs(a - b) < CLOSE : a === b);

/**
 * The settings, in words, that are still to be made before a reading is the one asked for. wanted: all settings.
 * @type {(stage: any, reading: string, wanted: any) => any}
 */
export function toSet({ settings, depends, tell }, reading, wanted) {
  const now = settings();
  return depends[reading].filter((name) => !same(now[name], wanted[name])).map((name) => tell[name](wanted[name]));
}

/** The readings of a finished run, by the names that questions use. */
function runReadings(trace) {
  const line = trace.trimEnd().split("\n").pop();
  let last = {};
  try { last = JSON.parse(line); } catch { return {}; }
  if (last.kind !== "summary" || !last.steps) return {};
  return { tokens_a_step: last.mean_accepted, passes: last.target_calls, steps: last.steps, tokens: last.new_tokens,
    acceptance_rate: last.acceptance_rate, longest_kept: last.accepted_histogram.length - 1 };
}

/**
 * spec: the directive. host: trace(name), race(name) → promises of NDJSON; live(element, spec, heard), if runs can be
 * made, returns an object with destroy(). hooks: nodes; asks: whether a question waits for a guess; changed(): the
 * readings have changed; asked(): the reader wants to uncover the figure. Returns {element, readings(judge),
 * toSet(reading, wanted), uncover(), show(), hide(), destroy()}.
 * @param {any} spec
 * @param {LessonHost} host
 * @param {any} hooks
 */
export function lessonStage(spec, host, hooks) {
  const box = el("div", { class: "ln-stage-box" }), cover = el("div", { class: "ln-cover" });
  const caption = spec.caption && el("p", { class: "ln-caption" }, ...hooks.nodes(spec.caption));
  const element = el("figure",
    { class: "ln-stage", "data-kind": spec.kind, "data-parts": (spec.parts || []).join(" ") },
    el("div", { class: "ln-stage-hold" }, box, cover), caption);
  let view = null, live = null, instrument = null, begun = {}, asked = false, own = {}, secret = hooks.asks;

  if (spec.after) {
    if (caption) caption.hidden = true;   // it may give the answer away
    cover.append(el("p", { text: "Guess first: then it is shown." }),
      el("button", { type: "button", class: "ln-button", text: "Show it now", onclick: () => hooks.asked() }));
    box.inert = true;
  } else cover.hidden = true;
  function uncover() {
    cover.hidden = true; box.inert = false; secret = false;
    if (caption) caption.hidden = false;
    if (instrument?.uncover) instrument.uncover();
  }
  const failed = () =>
    box.replaceChildren(el("p", { class: "ln-quiet",
      text: "This run could not be fetched. Open the lesson again in a moment." }));

  const BUILD = {
    async trace() {
      view = mountWatch(box, { ids: false, autoplay: Boolean(spec.play), keys: false, first: spec.step });
      view.feed(await host.trace(spec.example));
      if (!spec.play && spec.node !== null) view.select(spec.node);
    },
    async race() {
      view = mountCompare(box, { autoplay: false, keys: false });
      view.feed(await host.race(spec.example));
      view.seek(1e9);
    },
    async figure() { box.append(exhibitRow(spec.exhibits)); },
    async live() {
      if (host.live) { live = host.live(box, spec, (trace) => { own = runReadings(trace); hooks.changed(); }); return; }
      const hold = el("div");
      box.append(el("p", { class: "ln-quiet",
        text: "Runs need the page’s engine, which this file does not have. You see the run made earlier, and your " +
          "answer is held against it." }), hold);
      view = mountWatch(hold, { ids: false, autoplay: false, keys: false });
      const text = await host.trace(spec.example);
      view.feed(text);
      own = runReadings(text);
      hooks.changed();
    },
  };
  return {
    element, uncover,
    readings: (judge) => (judge === "run" ? own : instrument ? instrument.readings() : {}),
    toSet: (reading, wanted) => (instrument ? toSet(instrument, reading, { ...begun, ...wanted }) : []),
    show() {
      if (asked) return;
      asked = true;
      if (INSTRUMENTS[spec.kind]) {
        instrument = INSTRUMENTS[spec.kind](spec, { changed: hooks.changed, secret: () => secret });
        begun = instrument.settings();
        box.append(instrument.element);
      } else BUILD[spec.kind]().catch(failed);
    },
    hide() { if (view && view.pause) view.pause(); },
    get view() { return view; },
    destroy() { for (const one of [view, live]) if (one) one.destroy(); },
  };
}

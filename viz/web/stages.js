// A line of text below the bars: what is above and below the axis, and how long each stage of this step took.
/** @import { Step } from "./types.d.ts" */
/** @import { Glossary } from "./view-types.d.ts" */
import { el, writeText } from "./base.js";
import { isPlainRun } from "./trace.js";
import { duration } from "./words.js";

const PARTS = ["draft", "verify", "judge", "commit"];

/** @type {(glossary: Glossary) => { element: HTMLElement, draw(step: Step | undefined): void }} */
export function stageKey(glossary) {
  const times = new Map(PARTS.map((part) => [part, el("span", { class: "ds-part-time" })]));
  return {
    element: el("p", { class: "ds-timeline-key" },
      el("span", {}, "▲ ", glossary.term("gained", "tokens")),
      el("span", {}, "▼ ", glossary.term("spent", "milliseconds")),
      ...PARTS.map((part) => el("span", { "data-part": part }, glossary.term(`${part} time`, part), " ",
        times.get(part)))),
    draw(step) {
      const ms = (step && step.milliseconds) || {};
      for (const [part, time] of times) writeText(time, part === "draft" && step && !step.view.count
        && isPlainRun(step.view.run) ? "–" : ms[part] > 0 ? duration(ms[part]) : "");
    },
  };
}

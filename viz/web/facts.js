// The run in one line: drafter, target, rule, and its numbers (while it plays, the numbers up to the current step).
/** @import { Run } from "./types.d.ts" */
/** @import { Glossary, Model } from "./view-types.d.ts" */
import { el, writeText } from "./base.js";
import { constrainedLaw, exactnessOf } from "./trace.js";
import { duration, oneLine, shorten, visible } from "./words.js";

const millions = (n) => (n >= 1e9 ? `${(n / 1e9).toFixed(1)} B` : n >= 1e6 ? `${(n / 1e6).toFixed(1)} M` : n >= 1e3
  ? `${Math.round(n / 1e3)} k` : String(n));

/**
 * Whether the run is exact, in a badge that says which law is kept where a constraint holds, and which other is meant.
 * @type {(glossary: Glossary, run: Run) => HTMLElement}
 */
export function exactnessBadge(glossary, run) {
  const masked = constrainedLaw(run), word = exactnessOf(run.verifier);
  const law = masked ? `the law of ${masked}` : word === "another law" ? run.verifier.law : "";
  const ofText = run.constraint?.key === "heal" ? "law of a healed prompt" : "law of a constrained text";
  const badge = glossary.term(masked ? ofText : word, law ? `${word}: ${oneLine(law)}` : word);
  badge.classList.add("ds-badge");
  return badge;
}

/** @type {(glossary: Glossary) => { element: HTMLElement, draw(model: Model, index: number): void }} */
export function runFacts(glossary) {
  const title = el("div",
    { class: "ds-run-title", title: "Drafter, target with its number of parameters, rule, temperature" });
  const numbers = el("dl", { class: "ds-run-numbers" });
  const figure = (word, label) => {
    const value = el("dd", {}), term = glossary.term(word, label);
    numbers.append(el("div", {}, el("dt", {}, term), value));
    return value;
  };
  const mean = figure("mean accepted", "tokens a step"), time = figure("compute time", "compute time");
  let told = null;
  return {
    element: el("div", { class: "ds-run" }, title, numbers),
    draw(model, index) {
      if (told !== model.run) {
        told = model.run;
        title.replaceChildren();
        if (told) {
          const { drafter, verifier, target, sampling } = told;
          const size = target.parameters ? ` (${millions(target.parameters)})` : "";
          const who = drafter.family === "none" ? ["plain decoding", "by"]
            : [oneLine(drafter.title || drafter.key), drafter.family === "decoder" ? "by" : "drafts for"];
          const other = (drafter.parts || {}).draft;
          const draft = other && other !== "draft" ? ` with ${shorten(visible(other), 40)}` : "";
          title.append(el("strong", {}, glossary.known(drafter.family, who[0])),
            `${draft} ${who[1]} ${shorten(visible(target.name), 40)}${size}, `,
            ...(drafter.family === "decoder" ? []
              : [glossary.term("rule", "rule"), ` ${oneLine(verifier.title || verifier.key)} `]),
            exactnessBadge(glossary, told), " ",
            glossary.term("temperature", "temperature"), ` ${sampling.temperature}`);
        }
      }
      const step = model.steps[index];
      const tokens = step ? step.view.firstIndex + step.view.tokens : 0;
      writeText(mean, step ? (tokens / (index + 1)).toFixed(2) : "–");
      writeText(time, step ? duration(step.view.start + step.view.total) : "–");
    },
  };
}

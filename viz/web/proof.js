// What a run proves, in one sentence with its own numbers: how few passes of the target it took, and whether the text
// is the same.
/** @import { Run } from "./types.d.ts" */
/** @import { Checked, Glossary, Model, ProofOptions } from "./view-types.d.ts" */
import { el, setAttributes, writeText } from "./base.js";
import { constrainedLaw, exactnessOf, isExact, isPlainRun } from "./trace.js";
import { oneLine, plural, visible } from "./words.js";

const passesOf = (count) => `${plural(count, "pass", "passes")} of the target`;

/** What was taken back of the prompt, and what that means for the text. */
const healed = ({ text }) => (text ? `“${visible(text)}” was taken back from the prompt: the text has the target’s ` +
  "own law, given that it begins so." : "No token could lie across the prompt’s end, so nothing was taken back.");

/**
 * What lossless or lossy means for the text of a run that was not compared with plain decoding.
 * @type {(run: Run) => string}
 */
function meaning({ verifier, sampling, constraint }) {
  const law = constrainedLaw({ verifier, constraint });
  if (verifier.up_to_rounding)
    return "Equal up to rounding: where two tokens are nearly as likely, half precision may decide otherwise than " +
    "in plain decoding.";
  if (exactnessOf(verifier) === "another law")
    return `Another law: this is ${oneLine(verifier.law)}, which means to write other texts than the target’s own.`;
  if (!verifier.lossless) return "Lossy: this rule may keep what the target would not have written.";
  if (constraint?.key === "heal") return `Lossless. ${healed(constraint)}`;
  if (law) return `Lossless: the draft changes the speed, not the law of ${oneLine(law)}. That can be far from the ` +
    "target’s own law of texts, given that the text is valid.";
  if (sampling.temperature === 0) return "Lossless: the draft changes the speed, never the text.";
  return "Lossless: the draft changes the speed; the distribution of texts stays the same.";
}

/**
 * checked: {alike, tokens, index, comparable}, the comparison with plain decoding on the same prompt. whole: whether
 * all tokens were compared.
 * @type {(run: Run, whole: boolean, checked: Checked) => string}
 */
function compared(run, whole, { alike, tokens, index, comparable }) {
  const heals = run.constraint?.key === "heal";
  if (!comparable) return meaning(run);
  if (alike) return `Checked against ${whole ? "" : `the first ${plural(tokens, "token")} of `}plain ` +
    `decoding${run.constraint ? (heals ? ", healed as well" : ", masked as well") : ""}` +
    `${run.sampling.temperature ? ", same seed" : ""}.${heals ? ` ${healed(run.constraint)}` : ""}`;
  return `Plain decoding wrote another text from token ${index + 1} on, outlined here.` +
    (isExact(run.verifier) ? " Where two tokens are nearly as likely, rounding may decide."
      : exactnessOf(run.verifier) === "another law" ? ` This is ${oneLine(run.verifier.law)}.`
      : " This rule is lossy.");
}

/**
 * {main, more, tick: true | false | null}. tick: whether the text was compared with that of plain decoding and is the
 * same. playing: other steps are still to be shown, so the sentence covers only the first `shown` + 1 steps.
 * @type {(model: Model, checked: Checked | null, options?: ProofOptions) => { main: string, more: string,
 *   tick: boolean | null }}
 */
export function proofOf(model, checked, { playing = false, shown = -1 } = {}) {
  const { run, summary, steps } = model;
  if (!run || !steps.length) return { main: "", more: "", tick: null };
  if (playing || !summary) {
    const step = steps[shown];
    if (!step) return { main: "The target reads each draft in one pass.", more: "", tick: null };
    const tokens = step.view.firstIndex + step.view.tokens;
    const instead = tokens > step.view.passes && !isPlainRun(run) ? ` instead of ${tokens}` : "";
    const main = `After step ${shown + 1}: ${plural(tokens, "token")} in ${passesOf(step.view.passes)}${instead}.`;
    return { main, more: "", tick: null };
  }
  const tokens = summary.new_tokens, passes = passesOf(summary.target_calls);
  if (isPlainRun(run)) return { main: `${plural(tokens, "token")} in ${passes}: plain decoding, one pass for every ` +
    `token.`, more: "This is what a drafter is measured against.", tick: null };
  const same = checked && checked.comparable ? checked.alike : null;
  const whole = Boolean(checked) && checked.tokens >= tokens;   // a long plain run is cut short
  const text = same === true ? `, and the same text${whole ? "" : " as far as it was checked"}` : same === false
    ? ", but another text" : run.verifier.lossless && run.sampling.temperature && !run.constraint
    ? ", same distribution" : "";
  const instead = tokens > summary.target_calls ? ` instead of ${tokens}` : "";
  return { main: `${plural(tokens, "token")} in ${passes}${instead}${text}.`,
    more: checked ? compared(run, whole, checked) : meaning(run), tick: same };
}

/**
 * The sentence on the page. draw(model, checked, options) as above.
 * more: what is to be said about it, elsewhere.
 * @type {(glossary: Glossary) => { element: HTMLElement, more: HTMLElement, draw(model: Model, checked: Checked | null,
 *   options?: ProofOptions): void }}
 */
export function proofLine(glossary) {
  const tick =
    glossary.explain(el("span", { class: "ds-tick", text: "✓", role: "img", "aria-label": "checked", tabindex: 0,
      hidden: true }), "checked");
  const main = el("strong", {}), more = el("p", { class: "ds-proof-more" });
  const element = el("p", { class: "ds-proof" }, tick, main);
  return {
    element, more,
    draw(model, checked, options) {
      const said = proofOf(model, checked, options);
      tick.hidden = said.tick !== true;
      writeText(main, said.main);
      writeText(more, said.more);
      setAttributes(element, { "data-same": said.tick });
    },
  };
}

// Compares two finished runs: where their texts part, and which numbers changed.
/** @import { Glossary } from "./view-types.d.ts" */
import { el, setAttributes } from "./base.js";
import { isExact } from "./trace.js";
import { plural, quote } from "./words.js";

const DEEPEST = 8;   // rows of acceptance by depth
const tokensOf = (model) => model.steps.flatMap((step) => step.output.tokens);
const pieceAt = (model, index) => {
  const step = model.steps[model.stepOfIndex(index)];
  return quote(model.outputFace(step, index - step.view.firstIndex));
};

/** Index of the first token that is not the same, or null if one text is the beginning of the other. */
function firstDifference(one, other) {
  const a = tokensOf(one), b = tokensOf(other), shared = Math.min(a.length, b.length);
  for (let i = 0; i < shared; i++) if (a[i] !== b[i]) return i;
  return null;
}

/** One sentence: whether two such runs may differ, and why. */
function expectation(one, other) {
  const a = one.run, b = other.run;
  if (!isExact(a.verifier) || !isExact(b.verifier)) return " A lossy rule may change the text.";
  if (a.sampling.temperature !== b.sampling.temperature)
    return " The temperature differs, so another text is to be expected.";
  if (a.verifier.up_to_rounding || b.verifier.up_to_rounding)
    return " In half precision, rounding may part texts where two tokens are nearly as likely.";
  if (a.sampling.temperature === 0)
    return " Both runs are lossless and the temperature is 0, so only rounding can explain a difference.";
  return " Both runs are lossless, so both texts are draws from the target’s own distribution; chance decides which.";
}

/** {index: where the texts part or null, alike: true | false, text: one or two sentences}. */
function textDifference(one, other) {
  const index = firstDifference(one, other);
  if (index !== null) {
    return { index, alike: false, text: `The texts part at token ${index + 1}: the first wrote ` +
      `${pieceAt(one, index)}, the other ${pieceAt(other, index)}.${expectation(one, other)}` };
  }
  const more = one.tokens - other.tokens;
  if (more === 0) return { index, alike: true, text: "The same text, token for token." };
  return { index, alike: true, text: `The same text as far as both go; ` +
    `${more > 0 ? "the first" : "the other"} wrote ${plural(Math.abs(more), "token")} more.` };
}

const plain = (digits) => (value) => value.toFixed(digits);
const share = (value) => `${Math.round(100 * value)} %`;
const signed = (show) => (a, b) => {
  const text = show(Math.abs(b - a));
  return Number.parseFloat(text) === 0 ? "no change" : `${b > a ? "+" : "−"}${text}`;
};
const ratio = (a, b) => (a > 0 ? `${(b / a).toFixed(2)}×` : "–");
const points = signed((value) => `${Math.round(100 * value)} points`);

/**
 * Rows of the table: [label, glossary word or null, first, second, difference], all text. elsewhere: one was timed on
 * another machine.
 */
function numberDifference(one, other, elsewhere) {
  const a = one.summary, b = other.summary;
  const row = (label, word, x, y, show, change) =>
    [label, word, ...[x, y].map((v) => (v === null || v === undefined ? "–" : show(v))),
      typeof x === "number" && typeof y === "number" ? change(x, y) : "–"];
  const kept = (summary, depth) => {
    const at = summary.acceptance_by_depth.find((entry) => entry.depth === depth);
    return at && at.reached ? at.accepted / at.reached : null;
  };
  const deepest = Math.min(DEEPEST,
    Math.max(0, ...[...a.acceptance_by_depth, ...b.acceptance_by_depth].filter((entry) => entry.reached)
      .map((entry) => entry.depth)));
  return [
    row("tokens a step", "mean accepted", a.mean_accepted, b.mean_accepted, plain(2), signed(plain(2))),
    row("steps", "step", a.steps, b.steps, plain(0), signed(plain(0))),
    row("passes of the target", "target calls", a.target_calls, b.target_calls, plain(0), signed(plain(0))),
    row("new tokens", null, a.new_tokens, b.new_tokens, plain(0), signed(plain(0))),
    row("tokens a second", "tokens/s", a.tokens_per_second, b.tokens_per_second, plain(1),
      elsewhere ? () => "timed elsewhere" : ratio),
    ...Array.from({ length: deepest }, (_, k) => row(`kept at depth ${k + 1}`, k ? null : "accepted", kept(a, k + 1),
      kept(b, k + 1), share, points)),
  ];
}

/**
 * The sentence and the table. draw(one, other) returns where the texts part.
 * @param {Glossary} glossary
 */
export function makeDifference(glossary) {
  const line = el("p", { class: "ds-same", role: "status" }), body = el("tbody", {});
  const table = el("table", { class: "ds-outcome" }, el("caption", { text: "What changed, in numbers" }),
    el("thead", {}, el("tr", {},
      ...["", "first", "what if", "difference"].map((text) => (text ? el("th", { scope: "col", text })
        : el("td", {}))))), body);
  const element = el("div", { class: "ds-card ds-outcome-card", hidden: true }, line,
    el("div", { class: "ds-scroll", tabindex: 0, role: "group", "aria-label": "What changed, in numbers" }, table),
    el("p", { class: "ds-quiet",
      text: "Kept at a depth: share of the steps in which the walk came that far. Depth 1 is reached in every step, " +
        "deeper ones only where all before was kept: a high share deep down can stand beside few tokens a step." }));
  return {
    element,
    draw(one, other, elsewhere) {
      const whole = Boolean(one.summary && other.summary);
      element.hidden = !whole;
      if (!whole) return null;
      const verdict = textDifference(one, other);
      line.textContent = verdict.text;
      setAttributes(line, { "data-alike": verdict.alike });
      body.replaceChildren(...numberDifference(one, other, elsewhere).map(([label, word, ...cells]) => el("tr", {},
        el("th", { scope: "row" }, word ? glossary.term(word, label) : label),
        ...cells.map((text) => el("td", { text })))));
      return verdict.index;
    },
  };
}

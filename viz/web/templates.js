// The sentences that a rule brings with its trace: templates whose placeholders are filled with text. The page itself
// names no rule.
/** @import { Step, Verdict } from "./types.d.ts" */
import { shortText } from "./cells.js";
import { plural, prob, probs, quote } from "./words.js";

const LONGEST = 1000;

/**
 * values: {token, p, q, accept, coin, final}, all text. Inserted text is not expanded; unknown placeholders stay.
 * @type {(template: string, values: Record<string, string>) => string}
 */
export const fillTemplate = (template, values) => shortText(template, LONGEST)
  .replace(/\{(\w+)\}/g, (whole, name) => (Object.hasOwn(values, name) ? values[name] : whole));

/** The first of these sentences that the run's rule has, else null. */
function ownSentence(step, names) {
  const { run } = step.view, sentences = run && run.verifier && run.verifier.sentences;
  if (!sentences || typeof sentences !== "object") return null;
  const found = names.find((name) => Object.hasOwn(sentences, name) && typeof sentences[name] === "string"
    && sentences[name]);
  return found === undefined ? null : sentences[found];
}

/**
 * Why a judgement ended as it did, in the rule's own words; null if it has none. after: refusals at the same place
 * before this one;
 * wish: the token that the target wanted there, and p of this one beside it, as text; replaced: the token that came in
 * its place, as text, or null.
 * @type {(step: Step, verdict: Verdict, around: { after: number, wish: string[], replaced: string | null }) =>
 *   string | null}
 */
export function ruleSentence(step, { node, rule, p, q, accept, coin, kept }, { after, wish, replaced }) {
  const { nodes } = step, tossed = typeof coin === "number";
  const told = ownSentence(step, kept ? [...(accept >= 1 ? [`${rule}.sure`] : []), `${rule}.kept`]
    : [`${rule}.refused`]);
  if (told === null) return null;
  const [final, own] = wish, [toldP, toldQ] = !tossed ? [own, prob(q)] : accept < 1 ? probs(p, q) : [prob(p), prob(q)];
  const values = { token: quote(nodes.piece[node]), p: toldP, q: toldQ, accept: prob(accept), coin: prob(coin), final };
  const before = tossed && after ? `After ${plural(after, "refusal")} here, p is what was left of it: ` : "";
  if (replaced === null) return before + fillTemplate(told, values);
  const instead = ownSentence(step, [`${rule}.replaced`]) || "In its place the target wrote {final}.";
  return `${before + fillTemplate(told, values)} ${fillTemplate(instead, { ...values, final: replaced })}`;
}

/**
 * The rule's own words for the token that came in the place of a refused one, as text; null if it has none.
 * @type {(step: Step, rule: string, replaced: string) => string | null}
 */
export function replacedSentence(step, rule, replaced) {
  const own = ownSentence(step, [`${rule}.replaced`]);
  return own === null ? null : fillTemplate(own, { final: replaced });
}

/**
 * The rule's sentence for the final token. kind: recovered | bonus; rule: the one that refused last at its place;
 * tokens, final: text.
 * @type {(step: Step, kind: "recovered" | "bonus", rule: string, tokens: string, final: string) => string | null}
 */
export function finalRuleSentence(step, kind, rule, tokens, final) {
  const own = ownSentence(step, [`${rule}.${kind}`, kind]);
  return own === null ? null : fillTemplate(own, { token: tokens, final });
}

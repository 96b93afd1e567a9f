// Why a token was kept or thrown away, in plain words: the rule's own sentences (templates.js), or sentences that fit
// the shape of a judgement.
/** @import { NodeRef, Step } from "./types.d.ts" */
import { finalRuleSentence, replacedSentence, ruleSentence } from "./templates.js";
import { isExact, wasKept } from "./trace.js";
import { plural, prob, probs, quote, visible } from "./words.js";

const END = "The text came to its end before this token’s turn, so it was not judged.";

const LEFT = { true: "p without the refused tokens", false: "what is left of p after taking q away" };

/** @type {(step: Step, node: number) => boolean} */
export const isKept = (step, node) => step.nodes.status[node] === "accepted";
const siblingsOf = (step, node) => (step.view.children.get(step.nodes.parent[node]) || []).filter((i) => i !== node);
const topP = (step, node, token) => {
  const distribution = step.view.distributions.get(node);
  const found = distribution && (distribution.p || []).find((entry) => entry[0] === token);
  return found ? found[2] : null;
};

/** The token that the target itself wanted in a node's place: a kept sibling or the final token, with its p, and the p
 * of the node, as far as that takes to tell the two apart. */
function wanted(step, node) {
  const parent = step.nodes.parent[node], kept = siblingsOf(step, node).find((i) => isKept(step, i));
  const { final } = step.view;
  const [token, piece] = kept !== undefined ? [step.nodes.token[kept], step.nodes.piece[kept]]
    : final && final.parent === parent ? [final.token, final.piece] : [];
  const own = step.nodes.p[node];
  if (piece === undefined) return ["another token", prob(own)];
  const p = topP(step, parent, token), [toldP, toldOwn] = probs(p, own);
  return [p === null ? quote(piece) : `${quote(piece)} (p ${toldP})`, toldOwn];
}

/** No coin was tossed: the target named its token, at temperature 0 its favourite, otherwise a token drawn from p. */
function named(step, node, { p, accept, kept, rule }) {
  const { nodes, view: { run } } = step, piece = quote(nodes.piece[node]), here = `(p ${prob(nodes.p[node])})`;
  const [wish, own] = wanted(step, node);
  if (run && !isExact(run.verifier))
    return `The rule “${visible(rule)}” judged ${piece} ${here}: ${kept ? "accepted." : "rejected."}`;
  const start = (run ? run.sampling.temperature === 0 : p === accept) ? "The target’s favourite here was"
    : "The target drew its own token from p and got";
  return kept ? `${start} ${piece} ${here}, just what was drafted: accepted.`
    : `${start} ${wish}, not ${piece} (p ${own}): rejected.`;
}

/** Whether the token was picked by other means than a draw from q; such a token is judged with q = 1. */
const isOneHot = (judgement, earlier) => judgement.q === 1
  && !earlier.some((other) => other.rule === judgement.rule && other.q < 1);

function tossed(step, node, judgement, earlier) {
  const { nodes } = step, piece = quote(nodes.piece[node]), { p, q, accept, coin, kept, rule } = judgement;
  const left = earlier.length ? `After ${plural(earlier.length, "refusal")} here, what was left of p` : "p";
  const verdict = kept ? "accepted." : "rejected.";
  const fell = kept && accept >= 1 ? verdict : `the coin fell at ${prob(coin)}: ${verdict}`;
  if (p === null || p === undefined) return `The rule “${visible(rule)}” keeps ${piece} with probability ` +
    `${prob(accept)}; ${fell}`;
  if (isOneHot(judgement, earlier)) return `${piece} was picked, not drawn, so q counts as 1; ` +
    `${left} gave it ${prob(p)}, so it was to be kept with probability ${prob(accept)}; ${fell}`;
  if (q === null || q === undefined) return `The rule “${visible(rule)}” saw p ${prob(p)} and kept ${piece} with ` +
    `probability ${prob(accept)}; ${fell}`;
  const ours = earlier.length ? `After ${plural(earlier.length, "refusal")} here, q gave ${piece}` : `q gave ${piece}`;
  if (accept >= 1) return `${ours} ${prob(q)} and p even more, ${prob(p)}, so it was sure to be kept: ${verdict}`;
  const [toldQ, toldP] = probs(q, p);
  return `${ours} ${toldQ}, p only ${toldP}, so it was to be kept with probability ${prob(accept)}; ${fell}`;
}

/**
 * The refusals at a place of the walk, in order; before: only those before this judgement.
 * @type {(step: Step, parent: number, before?: number) => Step["judgements"]}
 */
export const refusalsAt = (step, parent, before = Infinity) => step.judgements.slice(0, before)
  .filter((j) => step.nodes.parent[j.node] === parent && !wasKept(j));

/** Whether a token was kept with the chance p ÷ q (1 where p is larger). */
const isRatio = ({ p, q, accept }) => typeof p === "number" && typeof q === "number" && q > 0
  && Math.abs(Math.min(1, p / q) - accept) < 1e-4;

/**
 * A judgement after refusals at its place, in numbers: how p and q changed, and the chance that came of it; null for
 * any other.
 */
function afterRefusals(step, node, judgement, earlier, replaced) {
  if (!earlier.length || !isRatio(judgement)) return null;
  const { nodes } = step, { p, q, accept, coin, kept, rule } = judgement, piece = quote(nodes.piece[node]);
  const ownP = nodes.p[node], ownQ = nodes.q[node];
  const many = earlier.length > 1, before = many ? `The ${earlier.length} refusals before` : "The refusal before";
  const hot = isOneHot(judgement, earlier);
  const taken = hot ? `took the refused ${many ? "tokens" : "token"} out of p` : "took q away from p for every token";
  const whole = ownP === null ? "p" : `the target’s ${prob(ownP)}`;
  const left = p === 0 ? `of ${whole} for ${piece}, nothing is left.`
    : `${whole} for ${piece} is ${prob(p)} of what is left.`;
  const changed = !hot && ownQ !== null && prob(q) !== prob(ownQ);
  const scaled = changed ? ` Of the draft’s ${prob(ownQ)}, after taking the refused ` +
    `${many ? "tokens" : "token"} away and scaling, q is ${prob(q)}.` : "";
  const fell = `the coin fell at ${prob(coin)}: ${kept ? "accepted" : "rejected"}.`;
  const ending = hot ? ` It was picked, not drawn, so its chance to be kept is ` +
    `${prob(accept)}; ${fell}`
    : accept >= 1 ? ` p is at least q${changed ? "" : `, ${prob(q)}`}, so it was sure to be kept: accepted.`
    : ` Chance to be kept: ${probs(p, q).join(" ÷ ")} = ${prob(accept)}; ${fell}`;
  const said = `${before} ${taken}: ${left}${scaled}${ending}`;
  if (replaced === null) return said;
  const own = replacedSentence(step, rule, replaced);
  return `${said} ${own || `In its place a new token was drawn from ${LEFT[hot]}: ${replaced}.`}`;
}

/** A judgement in the words of the run's rule, or, in a trace without such words, explained by its shape. */
function sentenceOfJudgement(step, node, judgement) {
  const parent = step.nodes.parent[node], { final } = step.view;
  const hasCoin = judgement.coin !== null && judgement.coin !== undefined;
  const earlier = refusalsAt(step, parent, judgement.order);
  const last = !judgement.kept && !step.judgements.slice(judgement.order + 1)
    .some((j) => step.nodes.parent[j.node] === parent);
  const replaced = hasCoin && last && final && final.kind === "recovered" && final.parent === parent
    ? quote(final.piece) : null;
  const later = hasCoin ? afterRefusals(step, node, judgement, earlier, replaced) : null;
  if (later !== null) return later;
  const own = ruleSentence(step, judgement, { after: earlier.length, wish: wanted(step, node), replaced });
  if (own !== null) return own;
  if (!hasCoin) return named(step, node, judgement);
  return tossed(step, node, judgement, earlier) +
    (replaced === null ? "" : ` In its place a new token was drawn from ` +
      `${LEFT[isOneHot(judgement, earlier)]}: ${replaced}.`);
}

function ignored(step, node) {
  const { nodes } = step, parent = nodes.parent[node];
  const unneeded = (reason) => (nodes.p[node] === null
    ? `The target did not look at it: ${reason}.` : `The target’s pass read it too (p ${prob(nodes.p[node])}), but ` +
    `the verdict did not need it: ${reason}.`);
  if (!step.judgements.length && nodes.p[node] === null) return "The target did not look at it in this step.";
  if (parent >= 0 && nodes.status[parent] === "rejected") {
    return unneeded(`it stands below ${quote(nodes.piece[parent])}, which was refused`);
  }
  if (parent >= 0 && nodes.status[parent] === "ignored") {
    let above = parent;
    while (nodes.parent[above] >= 0 && nodes.status[nodes.parent[above]] === "ignored") above = nodes.parent[above];
    const cause = nodes.parent[above];
    if (cause >= 0 && nodes.status[cause] === "rejected")
      return unneeded(`further up, ${quote(nodes.piece[cause])} was refused`);
    if (siblingsOf(step, above).some((i) => isKept(step, i)))
      return unneeded(`further up, another token than ${quote(nodes.piece[above])} was accepted`);
    return END;
  }
  const kept = siblingsOf(step, node).find((i) => isKept(step, i));
  if (kept !== undefined) return unneeded(`${quote(nodes.piece[kept])} was accepted, and siblings after the kept ` +
    `one are not asked`);
  return END;
}

function finalSentence(step) {
  const { final, count, isLast } = step.view, piece = quote(final.piece), p = topP(step, final.parent, final.token);
  const odds = p === null ? "" : ` (p ${prob(p)})`;
  if (count === 0) {
    const why = isLast && step.view.tokens === 1 ? "Just one token was left to write, so nothing was drafted"
      : "Nothing was drafted in this step";
    return `${why}: the target wrote its next token by itself, ${piece}${odds}.`;
  }
  if (final.kind === "bonus") {
    return finalRuleSentence(step, "bonus", "", "", piece + odds) ||
      `Every token on this path was kept, and the same pass of the target also gave the token after them: ` +
      `${piece}${odds}.`;
  }
  const here = refusalsAt(step, final.parent), ending = here[here.length - 1];
  const refused = [...new Set(here.map((j) => quote(step.nodes.piece[j.node])))];
  const names = refused.length > 3 ? `${refused.length} tokens` : refused.join(" and ");
  const own = finalRuleSentence(step, "recovered", ending ? ending.rule : "", names || "the draft", piece + odds);
  if (own !== null) return own;
  if (ending && (ending.coin === null || ending.coin === undefined)) return recoveredByName(step, ending, piece + odds);
  const left = LEFT[Boolean(ending) && isOneHot(ending, here.slice(0, -1))];
  return `${names || "The draft"} ${refused.length > 1 ? "were" : "was"} refused here, so a new token was drawn ` +
    `from ${left}: ${piece}${odds}.`;
}

/** Explains the final token after refusals without a coin. */
function recoveredByName({ view: { run } }, { p, accept }, final) {
  if (run && !isExact(run.verifier)) return `No drafted token was kept here, so the target wrote its own: ${final}.`;
  return (run ? run.sampling.temperature === 0 : p === accept)
    ? `No drafted token was the target’s favourite here, so its own went into the text: ${final}.`
    : `The target drew its own token from p, and none of the drafted ones was it: ${final}.`;
}

/**
 * The sentence for a node: an index, -1 for the root, "final" for the last token.
 * @type {(step: Step, node: NodeRef) => string}
 */
export function sentenceOf(step, node) {
  if (node === -1) return "The last token of the text so far. This step’s draft grows from it.";
  if (node === "final") return step.view.final ? finalSentence(step) : "";
  const judged = step.view.judged.get(node);
  if (!judged && isKept(step, node)) {
    const decoded = step.view.run && step.view.run.drafter.family === "decoder";
    const why = decoded ? "because the decoder chose it"
      : step.nodes.p[node] === null ? "without the target having looked at it" : "without a judgement of its own";
    return `It went into the text ${why}.`;
  }
  if (!judged) return ignored(step, node);
  const cut = step.nodes.status[node] === "ignored"
    ? " But the text had come to its end by then, so it is not part of it." : "";
  if (judged.length === 1) return sentenceOfJudgement(step, node, judged[0]) + cut;
  const words = ["First time: ", "Second time: ", "Third time: ", "Fourth time: "];
  return `It was drawn ${judged.length} times and judged each time. ` +
    judged.map((j, i) => (words[i] || `Time ${i + 1}: `) + sentenceOfJudgement(step, node, j)).join(" ") + cut;
}

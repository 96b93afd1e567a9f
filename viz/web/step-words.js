// A step and its nodes in a few words: what is proposed, what is being judged, what came of it.
/** @import { NodeRef, Probability, Step } from "./types.d.ts" */
import { isKept } from "./sentence.js";
import { isExact, wasKept } from "./trace.js";
import { plural, prob, quote, runningText, shorten, visible } from "./words.js";

/**
 * A node in a few words, for a screen reader that moves through the tree.
 * @type {(step: Step, node: NodeRef, rootPiece: string, waits?: boolean) => string}
 */
export function nodeName(step, node, rootPiece, waits) {
  if (node === -1) return `${visible(rootPiece)}, root`;
  if (node === "final") {
    const { piece, look, kind } = step.view.final;
    return `${visible(piece)}, ${look === "plain" ? "written by the target" : kind}`;
  }
  const { nodes } = step, q = nodes.q[node], piece = visible(nodes.piece[node]);
  const odds = q === null ? "" : `, q ${prob(q)}`;
  if (waits) return `${piece}, drafted, depth ${nodes.depth[node]}${odds}`;
  const judged = nodes.p[node] === null ? "" : `, p ${prob(nodes.p[node])}`;
  const saved = savedWords(step, node), named = `${piece}, ${nodes.status[node]}${saved && ` (${saved})`}`;
  return `${named}, depth ${nodes.depth[node]}${judged}${odds}`;
}

/**
 * What is proposed, before a verdict: a single node, or (null) all proposals for the place after the root.
 * @type {(step: Step, node: number | null) => string}
 */
export function proposal(step, node) {
  const { nodes, view } = step;
  const put = (i) => `${quote(nodes.piece[i])}${nodes.q[i] === null ? "" : ` (q ${prob(nodes.q[i])})`}`;
  if (node !== null) return `${put(node)} is proposed. The target has not judged it yet.`;
  // as in the table
  const first = [...view.children.get(-1)].sort((a, b) => (nodes.q[b] || 0) - (nodes.q[a] || 0));
  const few = first.slice(0, 3).map(put), more = first.length - few.length;
  return `Proposed as the next token: ${few.join(", ")}${more ? ` and ${more} more` : ""}. The target has not ` +
    `judged ${view.count > 1 ? "the draft" : "it"} yet.`;
}

/**
 * A verdict in the present tense, while others of its step are still to come.
 * @type {(step: Step, node: number) => string}
 */
export function judging(step, node) {
  const { nodes } = step;
  /** @type {[string, Probability][]} */
  const all = [["p", nodes.p[node]], ["q", nodes.q[node]]];
  const odds = all.filter(([, value]) => value !== null)
    .map(([name, value]) => `${name} ${prob(value)}`);
  const told = odds.length ? ` (${odds.join(", ")})` : "", kept = isKept(step, node), { run } = step.view;
  const greedy = run && run.sampling.temperature === 0 && isExact(run.verifier);
  const verdict = !greedy ? `it is ${kept ? "kept" : "refused"}`
    : kept ? "its favourite, so it is kept" : "another token is its favourite, so it is refused";
  return `The target reads ${quote(nodes.piece[node])}${told}: ${verdict}.`;
}

/**
 * Where a drafter found a token, in words; a source in any other form is quoted as it is.
 * @type {(source: string) => string}
 */
export function sourceWords(source) {
  const [, kind, place, end] = /^(context|block) (\d+)(?::(\d+))?$/.exec(source) || [];
  if (kind === "context") return Number(end) > Number(place) + 1
    ? `copied from tokens ${Number(place) + 1} to ${end} of the text`
    : `copied from token ${Number(place) + 1} of the text`;
  if (kind === "block") return `place ${place} of the drafted block`;
  return `from ${shorten(runningText(source), 40)}`;
}

const SAVED = new Map([["saved", "coin failed, saved"], ["carried", "kept with its branch"]]);

/**
 * What stands under a drafted token that was kept by what comes after it; "" for any other.
 * @type {(step: Step, node: number) => string}
 */
export function savedWords(step, node) {
  const own = step.view.judged.get(node);
  return own && isKept(step, node) && SAVED.get(own[own.length - 1].rule) || "";
}

/**
 * What stands under a final token that the target drew although it liked another better; "" for any other.
 * @type {(step: Step) => string}
 */
export function drawnWords({ view: { final, run, distributions } }) {
  if (!final || !(run && run.sampling && run.sampling.temperature > 0)) return "";
  const { p = [], residual = [] } = distributions.get(final.parent) || {};
  const law = residual.length ? residual : p;
  const own = law.find(([token]) => token === final.token);
  if (!own || !law.some(([, , chance]) => chance > own[2])) return "";
  return residual.length ? `drawn, ${prob(own[2])} of what is left` : `drawn, p ${prob(own[2])}`;
}

/**
 * What a step did, in one line.
 * @type {(step: Step) => string}
 */
export function stepSentence(step) {
  const { count, path, final, run } = step.view, decoder = run && run.drafter.family === "decoder";
  if (decoder && path.length) return `${plural(path.length, "token")} decided in one pass over all texts.`;
  if (decoder) return "One more pass over all texts; nothing is decided yet.";
  if (!count) return `Nothing drafted; the target wrote ${final ? quote(final.piece) : "nothing"}.`;
  const kept = path.length === count && count > 1 ? `all ${count} kept` : `${path.length} kept`;
  // a step in which the target did not look
  const unread = step.nodes.p.every((p) => p === null) && !step.judgements.length;
  if (unread) return `${count} drafted, ${kept} without a pass of the target: ` +
    `${plural(step.output.tokens.length, "token")}.`;
  const own = !final ? "" : final.kind === "bonus" ? ` and the target added ${quote(final.piece)}`
    : `, then the target wrote ${quote(final.piece)} instead`;
  return `${count} drafted, ${kept}${own}: ${plural(step.output.tokens.length, "token")} in one pass.`;
}

/**
 * The node worth looking at first: the final token where nothing was refused, otherwise the refused node that was
 * judged first where the walk ended. The numbers of its siblings after it follow from its refusal.
 * @type {(step: Step) => NodeRef}
 */
export function tellingNode(step) {
  const refusals = step.judgements.filter((j) => !wasKept(j));
  if (step.view.final && step.view.final.kind === "bonus") return "final";
  if (refusals.length) {
    const end = step.nodes.parent[refusals[refusals.length - 1].node];
    return refusals.find((j) => step.nodes.parent[j.node] === end).node;
  }
  return step.view.final ? "final" : step.view.path.length ? step.view.path[step.view.path.length - 1] : -1;
}

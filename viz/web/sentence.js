// Why a token was kept or thrown away, in plain words.
(function (D) {
  "use strict";
  const { quote } = D;
  const END = "The text came to its end before this token’s turn, so it was not judged.";

  const LEFT = { true: "p without the refused tokens", false: "what is left of p after taking q away" };

  const isKept = (step, node) => step.nodes.status[node] === "accepted";
  const siblingsOf = (step, node) => (step.view.children.get(step.nodes.parent[node]) || []).filter((i) => i !== node);
  const topP = (step, node, token) => {
    const distribution = step.view.distributions.get(node);
    const found = distribution && (distribution.p || []).find((entry) => entry[0] === token);
    return found ? found[2] : null;
  };

  /** Where the token came from that stands in place of refused ones at `parent`, if that is where the step ended. */
  function redrawn(step, parent, how) {
    const { final } = step.view;
    if (!final || final.kind !== "recovered" || final.parent !== parent) return "";
    const piece = quote(final.piece);
    return ` In its place a new token was drawn from ${LEFT[how === "one_hot"]}: ${piece}.`;
  }

  /** The token the target itself wanted where greedy and sampler-match refused: a kept sibling or the final token. */
  function wanted(step, node) {
    const kept = siblingsOf(step, node).find((i) => isKept(step, i));
    if (kept !== undefined) return [step.nodes.token[kept], step.nodes.piece[kept]];
    const { final } = step.view;
    return final && final.parent === step.nodes.parent[node] ? [final.token, final.piece] : null;
  }

  function named(step, node, judgement) {
    const { nodes } = step, piece = quote(nodes.piece[node]), parent = nodes.parent[node];
    const wish = wanted(step, node), here = nodes.p[node];
    const share = (token, text) => {
      const p = topP(step, parent, token);
      return p === null ? text : `${text} (p ${D.prob(p)})`;
    };
    if (judgement.rule === "sampler_match") {
      if (judgement.kept) return `The target drew its own token from p and got ${piece} (p ${D.prob(here)}), just what was drafted: accepted.`;
      const other = wish ? share(wish[0], quote(wish[1])) : "another token";
      return `The target drew its own token from p and got ${other}, not ${piece} (p ${D.prob(here)}): rejected.`;
    }
    if (judgement.kept) return `The target’s favourite here was ${piece} (p ${D.prob(here)}), just what was drafted: accepted.`;
    const other = wish ? share(wish[0], quote(wish[1])) : "another token";
    return `The target’s favourite here was ${other}, not ${piece} (p ${D.prob(here)}): rejected.`;
  }

  function tossed(step, node, judgement, earlier) {
    const { nodes } = step, piece = quote(nodes.piece[node]), { p, q, accept, coin, kept, rule } = judgement;
    const left = earlier.length ? `After ${D.plural(earlier.length, "refusal")} here, what was left of p` : "p";
    const verdict = kept ? "accepted." : "rejected.";
    const fell = kept && accept >= 1 ? verdict : `the coin fell at ${D.prob(coin)}: ${verdict}`;
    if (p === null || p === undefined) return `The rule “${D.visible(rule)}” keeps ${piece} with probability ${D.prob(accept)}; ${fell}`;
    if (rule === "one_hot" || (q === 1 && rule !== "iid" && rule !== "without_replacement")) {
      return `${piece} was proposed without a probability of its own; ${left} gave it ${D.prob(p)}, so it was kept with probability ${D.prob(accept)}; ${fell}`;
    }
    if (q === null || q === undefined) {
      return `The rule “${D.visible(rule)}” saw p ${D.prob(p)} and kept ${piece} with probability ${D.prob(accept)}; ${fell}`;
    }
    const ours = earlier.length ? `After ${D.plural(earlier.length, "refusal")} here, q gave ${piece}` : `q gave ${piece}`;
    if (accept >= 1) return `${ours} ${D.prob(q)} and ${earlier.length ? "p had even more left for it" : "p even more"}, ${D.prob(p)}, so it was sure to be kept: ${verdict}`;
    return `${ours} ${D.prob(q)}, ${earlier.length ? `and p had only ${D.prob(p)} left for it` : `p only ${D.prob(p)}`}, so it was kept with probability ${D.prob(accept)}; ${fell}`;
  }

  function sentenceOfJudgement(step, node, judgement) {
    const parent = step.nodes.parent[node];
    const earlier = step.judgements.slice(0, judgement.order).filter((j) => step.nodes.parent[j.node] === parent && !D.kept(j));
    const last = !step.judgements.slice(judgement.order + 1).some((j) => step.nodes.parent[j.node] === parent);
    if (judgement.coin === null || judgement.coin === undefined) {
      if (judgement.rule === "greedy" || judgement.rule === "sampler_match") return named(step, node, judgement);
      const verdict = judgement.kept ? "accepted." : "rejected.";
      return `The rule “${D.visible(judgement.rule)}” judged ${quote(step.nodes.piece[node])} (p ${D.prob(step.nodes.p[node])}): ${verdict}`;
    }
    return tossed(step, node, judgement, earlier) + (!judgement.kept && last ? redrawn(step, parent, judgement.rule) : "");
  }

  function ignored(step, node) {
    const { nodes } = step, parent = nodes.parent[node];
    const unneeded = (reason) => `The target’s pass read it too (p ${D.prob(nodes.p[node])}), but the verdict did not need it: ${reason}.`;
    if (parent >= 0 && nodes.status[parent] === "rejected") {
      return unneeded(`it stands below ${quote(nodes.piece[parent])}, which was refused`);
    }
    if (parent >= 0 && nodes.status[parent] === "ignored") {
      let above = parent;
      while (nodes.parent[above] >= 0 && nodes.status[nodes.parent[above]] === "ignored") above = nodes.parent[above];
      const cause = nodes.parent[above];
      if (cause >= 0 && nodes.status[cause] === "rejected") return unneeded(`further up, ${quote(nodes.piece[cause])} was refused`);
      if (siblingsOf(step, above).some((i) => isKept(step, i))) return unneeded(`further up, another token than ${quote(nodes.piece[above])} was accepted`);
      return END;
    }
    const kept = siblingsOf(step, node).find((i) => isKept(step, i));
    if (kept !== undefined) return unneeded(`${quote(nodes.piece[kept])} was accepted in its place`);
    return END;
  }

  function finalSentence(step) {
    const { final, count } = step.view, piece = quote(final.piece), p = topP(step, final.parent, final.token);
    const odds = p === null ? "" : ` (p ${D.prob(p)})`;
    if (count === 0) return `Nothing was drafted in this step: the target wrote its next token by itself, ${piece}${odds}.`;
    if (final.kind === "bonus") {
      return `Every token on the path was kept, and the same pass of the target also gave the token after them: ${piece}${odds}.`;
    }
    const here = step.judgements.filter((j) => step.nodes.parent[j.node] === final.parent && !D.kept(j));
    const rule = here.length ? here[here.length - 1].rule : "";
    if (rule === "greedy") return `No drafted token was the target’s favourite here, so its own went into the text: ${piece}${odds}.`;
    if (rule === "sampler_match") return `The target drew its own token from p, and none of the drafted ones was it: ${piece}${odds}.`;
    const refused = [...new Set(here.map((j) => quote(step.nodes.piece[j.node])))];
    const names = refused.length > 3 ? `${refused.length} tokens` : refused.join(" and ");
    return `${names || "The draft"} ${refused.length > 1 ? "were" : "was"} refused here, so a new token was drawn from ${LEFT[rule === "one_hot"]}: ${piece}${odds}.`;
  }

  /** The sentence for a node: an index, -1 for the root, "final" for the last token. */
  D.sentence = function (step, node) {
    if (node === -1) return "The last token of the text so far. This step’s draft grows from it.";
    if (node === "final") return step.view.final ? finalSentence(step) : "";
    const judged = step.view.judged.get(node);
    if (!judged) return ignored(step, node);
    const cut = step.nodes.status[node] === "ignored" ? " But the text had come to its end by then, so it is not part of it." : "";
    if (judged.length === 1) return sentenceOfJudgement(step, node, judged[0]) + cut;
    const words = ["First time: ", "Second time: ", "Third time: ", "Fourth time: "];
    return `It was drawn ${judged.length} times and judged each time. ` +
      judged.map((j, i) => (words[i] || `Time ${i + 1}: `) + sentenceOfJudgement(step, node, j)).join(" ") + cut;
  };

  /** The same in a few words, for a screen reader on its way through the tree. */
  D.nodeName = function (step, node, rootPiece, waits) {
    if (node === -1) return `${D.visible(rootPiece)}, root`;
    if (node === "final") return `${D.visible(step.view.final.piece)}, ${step.view.final.look === "plain" ? "written by the target" : step.view.final.kind}`;
    const { nodes } = step, q = nodes.q[node], piece = D.visible(nodes.piece[node]), odds = q === null ? "" : `, q ${D.prob(q)}`;
    if (waits) return `${piece}, drafted, depth ${nodes.depth[node]}${odds}`;
    return `${piece}, ${nodes.status[node]}, depth ${nodes.depth[node]}, p ${D.prob(nodes.p[node])}${odds}`;
  };

  /** What is proposed, before a verdict: of one node, or (null) for the place after the root. */
  D.proposal = function (step, node) {
    const { nodes, view } = step;
    const put = (i) => `${quote(nodes.piece[i])}${nodes.q[i] === null ? "" : ` (q ${D.prob(nodes.q[i])})`}`;
    if (node !== null) return `${put(node)} is proposed. The target has not judged it yet.`;
    const first = view.children.get(-1), few = first.slice(0, 3).map(put), more = first.length - few.length;
    return `Proposed as the next token: ${few.join(", ")}${more ? ` and ${more} more` : ""}. The target has not judged ${view.count > 1 ? "the draft" : "it"} yet.`;
  };

  /** Where a drafter found a token, in words; what is not known is told as it is. */
  D.sourceWords = function (source) {
    const [, kind, place] = /^(context|block) (\d+)$/.exec(source) || [];
    if (kind === "context") return `copied from token ${Number(place) + 1} of the text`;
    if (kind === "block") return `place ${place} of the drafted block`;
    return `from ${D.shorten(D.running(source), 40)}`;
  };

  /** What a step did, in one line. */
  D.stepSentence = function (step) {
    const { count, path, final } = step.view;
    if (!count) return `Nothing drafted; the target wrote ${final ? quote(final.piece) : "nothing"}.`;
    const kept = path.length === count && count > 1 ? `all ${count} kept` : `${path.length} kept`;
    const own = !final ? "" : final.kind === "bonus" ? ` and the target added ${quote(final.piece)}` : `, then the target wrote ${quote(final.piece)} instead`;
    return `${count} drafted, ${kept}${own}: ${D.plural(step.output.tokens.length, "token")} in one pass.`;
  };

  /** The node worth looking at first: the last one judged, or the final token where nothing was refused. */
  D.tellingNode = function (step) {
    const refusals = step.judgements.filter((j) => !D.kept(j));
    if (step.view.final && step.view.final.kind === "bonus") return "final";
    if (refusals.length) return refusals[refusals.length - 1].node;
    return step.view.final ? "final" : step.view.path.length ? step.view.path[step.view.path.length - 1] : -1;
  };
})(globalThis.Draftscope);

// Explains the chosen token: one sentence, the coin on its ruler, p and q as paired bars.
/** @import { Distribution, Probability } from "./types.d.ts" */
/** @import { Glossary } from "./view-types.d.ts" */
import { clamp, el, setAttributes, svgEl } from "./base.js";
import { chipSize, makeChip } from "./chip.js";
import { patchIcon, patchOf } from "./picture.js";
import { refusalsAt, sentenceOf } from "./sentence.js";
import { judging, proposal, sourceWords } from "./step-words.js";
import { mendTree } from "./tree-places.js";
import { prob, shorten, visible } from "./words.js";

const TOP = 7;
const UNKNOWN = "The target is behind a serving engine, which tells p of a few tokens only: of those that were "
  + "drafted or could have been, or of the likeliest. What is left of p is spread evenly over all others.";

/**
 * Rows for the bars, sorted by p: the chosen token, the top tokens of p, q and the residual together, and a few
 * tokens that were cut.
 * @param {Distribution | undefined} distribution
 * @param {number} token
 * @param {string} piece
 * @param {Probability} p
 * @param {Probability} q
 */
export function barRows(distribution, token, piece, p, q) {
  const rows = new Map();
  const put = (list, field) => (list || []).forEach(([id, text, chance]) => {
    if (!rows.has(id)) rows.set(id, { id, piece: text, p: null, q: null, residual: null });
    rows.get(id)[field] = chance;
  });
  put(distribution.p, "p"); put(distribution.q, "q"); put(distribution.residual, "residual");
  if (token !== null && !rows.has(token)) rows.set(token, { id: token, piece, p, q, residual: null });
  const weight = (row) => Math.max(row.p || 0, row.q || 0, row.residual || 0);
  const all = [...rows.values()].sort((a, b) => weight(b) - weight(a));
  const chosen = all.filter((row) => row.id === token);
  const top = chosen.concat(all.filter((row) => row.id !== token && weight(row) > 0).slice(0, TOP - chosen.length));
  const zero = all.filter((row) => weight(row) === 0 && row.id !== token).slice(0, 2);
  const byP = (a, b) => (b.p || 0) - (a.p || 0) || weight(b) - weight(a);
  return top.concat(zero).sort(byP).map((row) => ({ ...row, cut: weight(row) === 0 || row.p === 0 }));
}

function ruler(judgement, glossary) {
  const at = (value) => `${(value * 100).toFixed(2)}%`;
  const track = el("div", { class: "ds-ruler", "aria-hidden": "true" });
  const keep = el("span", { class: "ds-ruler-keep" });
  keep.style.width = at(clamp(judgement.accept, 0, 1));
  const coin = el("span", { class: "ds-ruler-coin", "data-kept": judgement.kept });
  coin.style.left = at(clamp(judgement.coin, 0, 1));
  track.append(keep, coin);
  const words = el("div", { class: "ds-ruler-words" },
    el("span", {}, glossary.term("keeping", "kept below"), ` ${prob(judgement.accept)}`),
    el("span", { class: "ds-ruler-coin-word" }, glossary.term("coin", "coin"), ` ${prob(judgement.coin)}`));
  return el("div", { class: "ds-ruler-box" }, track, words);
}

/** What the column of the residual holds: what is left after all refusals, beside the first of them, too. */
function leftOver(step, place) {
  const { length } = refusalsAt(step, place), refusals = length > 1 ? `all ${length} refusals` : "the refusal";
  return `residual: what ${refusals} in this place left of p, scaled to sum to 1`;
}

/** The icon of a token that is a patch of a picture. */
function tile(run, id) {
  const patch = patchOf(run, id);
  return patch && patchIcon(patch, { class: "ds-patch ds-bar-patch" });
}

function bars(rows, token, fields, glossary, run, title = "The likeliest next tokens in this place") {
  const table = el("table", { class: "ds-bars", "data-fields": fields.length },
    el("caption", { text: title }),
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, glossary.term("token", "token")),
      ...fields.map((f) => el("th", { scope: "col", "data-field": f }, glossary.term(f, f))))));
  const body = el("tbody", {}), words = rows.map((row) => visible(row.piece));
  const alike = words.map((word) => words.indexOf(word) !== words.lastIndexOf(word));   // several tokens end a text
  if (alike.includes(true)) table.caption.append(" (# tells apart tokens that look alike)");
  rows.forEach((row, i) => {
    const word = alike[i] ? `${words[i]} #${row.id}` : words[i];
    const line = el("tr", { "data-chosen": row.id === token, "data-cut": row.cut },
      el("th", { scope: "row" }, tile(run, row.id),
        el(row.cut ? "s" : "span", { class: "ds-bar-token", text: shorten(word, 14) })));
    for (const field of fields) {
      const bar = el("span", { class: "ds-bar", "data-field": field });
      bar.style.width = `${((row[field] || 0) * 100).toFixed(1)}%`;
      const number = row[field] === null || row[field] === undefined ? "" : row[field] === 0
        ? (field === "residual" ? "0" : "cut") : prob(row[field]).replace("under ", "<").replace("over ", ">");
      line.append(el("td", {}, el("div", {}, el("span", { class: "ds-bar-track" }, bar),
        el("span", { class: "ds-bar-number", text: number }))));
    }
    body.append(line);
  });
  table.append(body);
  return table;
}

/**
 * brief: the chip and the sentence only.
 * @param {HTMLElement} box
 * @param {Glossary} glossary
 * @param {boolean} [brief]
 */
export function makeInspector(box, glossary, brief) {
  const chip = svgEl("svg", { class: "ds-inspector-chip", "aria-hidden": "true" });
  const status = el("span", { class: "ds-inspector-status" });
  const facts = el("dl", { class: "ds-facts" }), source = el("span", { class: "ds-quiet" });
  const sentence = el("p", { class: "ds-sentence" }), coins = el("div", {});
  const more = el("div", { class: "ds-inspector-more" });
  box.append(el("div", { class: "ds-why" },
    el("div", { class: "ds-inspector-head" }, chip, el("div", { class: "ds-inspector-what" }, status, source)),
    sentence, coins), more);
  let key = "";

  function headChip(text, kind, look, patch) {
    const size = chipSize(text, kind, patch), one = makeChip({});
    one.draw(size, kind, look);
    setAttributes(chip, { width: size.w + 6, height: 34, viewBox: `${-size.w / 2 - 3} -17 ${size.w + 6} 34` });
    chip.replaceChildren(one.g);
  }

  function clear(text) {
    key = "";
    box.removeAttribute("data-status");
    chip.replaceChildren(); setAttributes(chip, { width: 0, height: 34 });
    status.textContent = source.textContent = "";
    more.replaceChildren(); coins.replaceChildren();
    sentence.textContent = text || "";
  }

  return {
    clear,
    /** Before the verdict: a node and its siblings, or (null) all proposals for the next token. */
    propose(step, node) {
      const now = `${step.index}/${step.view.firstIndex}/${node}/open`;
      if (now === key) return;
      clear(proposal(step, node));
      status.textContent = "not judged yet";
      key = now;
      const { nodes, view } = step, rivals = view.children.get(node === null ? -1 : nodes.parent[node]);
      const rows = rivals.filter((i) => nodes.q[i] !== null)
        .map((i) => ({ id: i, piece: nodes.piece[i], q: nodes.q[i] })).sort((a, b) => b.q - a.q).slice(0, TOP);
      if (!brief && rows.length) more.append(bars(rows, node, ["q"], glossary, view.run, "Proposed in this place"));
      glossary.tidy();
    },
    /** coming: other verdicts of the step are still to be shown. */
    draw(step, node, rootPiece, coming = false) {
      if (node === "final" && !step.view.final) node = -1;
      const now = `${step.index}/${step.view.firstIndex}/${node}/${coming}`;
      if (now === key) return;
      key = now;
      const { nodes, view } = step, final = node === "final";
      const place = final ? view.final.parent : node === -1 ? -1 : nodes.parent[node];
      const token = final ? view.final.token : node === -1 ? null : nodes.token[node];
      const piece = final ? view.final.piece : node === -1 ? rootPiece : nodes.piece[node];
      const kind = final ? view.final.kind : node === -1 ? "root" : nodes.status[node];
      const look = final ? view.final.look : kind;
      headChip(mendTree(step, rootPiece)[final ? view.count : node === -1 ? "root" : node], kind, look,
        patchOf(view.run, node === -1 ? view.root : token));
      status.replaceChildren(look === "plain" ? glossary.term("plain", "plain") : glossary.known(kind, kind));
      if (node !== -1) status.append(", ", glossary.term("depth", "depth"),
        ` ${final ? (place < 0 ? 1 : nodes.depth[place] + 1) : nodes.depth[node]}`);
      box.setAttribute("data-status", kind);
      sentence.textContent = coming && typeof node === "number" && node >= 0 ? judging(step, node)
        : sentenceOf(step, node);
      if (brief) return;
      more.replaceChildren(); coins.replaceChildren();
      for (const judgement of (typeof node === "number" && view.judged.get(node)) || []) {
        if (judgement.coin !== null && judgement.coin !== undefined) coins.append(ruler(judgement, glossary));
      }
      const from = typeof node === "number" && node >= 0 ? nodes.source[node] : null;
      source.textContent = from ? sourceWords(from) : "";
      const distribution = view.distributions.get(node === -1 ? -1 : place);
      facts.replaceChildren();
      if (typeof node === "number" && node >= 0 && !distribution) {
        const fact = (word, value) =>
          facts.append(el("div", {}, el("dt", {}, glossary.term(word, word)), el("dd", { text: value })));
        if (nodes.p[node] !== null) fact("p", prob(nodes.p[node]));
        if (nodes.q[node] !== null) fact("q", prob(nodes.q[node]));
        more.append(facts);
      }
      if (distribution) {
        const fields = ["p", ...((distribution.q || []).length ? ["q"] : []),
          ...((distribution.residual || []).length ? ["residual"] : [])];
        const own = typeof node === "number" && node >= 0;
        more.append(bars(barRows(distribution, token, piece, own ? nodes.p[node] : null, own ? nodes.q[node] : null),
          token, fields, glossary, view.run));
        if (fields.includes("residual")) more.append(el("p", { class: "ds-quiet", text: leftOver(step, place) }));
        if (view.run.target.known) more.append(el("p", { class: "ds-quiet", text: UNKNOWN }));
      } else if (node !== -1) {
        more.append(el("p", { class: "ds-quiet",
          text: "The walk did not reach this place, so the trace does not hold the other candidates for it." }));
      }
      glossary.tidy();
    },
  };
}

// The text of a lesson, which comes as plain nodes: elements from a short list, formulas, numbers from runs, links,
// questions, claims.
import { el, setAttributes } from "../base.js";

const MATH = "http://www.w3.org/1998/Math/MathML";
const ELEMENTS =
  new Set(["p", "em", "strong", "ul", "ol", "li", "blockquote", "h4", "table", "thead", "tbody", "tr", "th", "td", "hr",
    "pre", "code", "br"]);
const FORMULA =
  new Set(["math", "mrow", "mi", "mn", "mo", "msup", "msub", "msubsup", "mfrac", "msqrt", "mroot", "mover", "munder",
    "munderover", "mtext", "mspace", "mstyle", "mtable", "mtr", "mtd", "mpadded", "mphantom"]);

/**
 * Returns a function that turns nodes into elements. context: glossary, symbols {letter: meaning}, href(address) → a
 * string or null, directive(node) → an element.
 * @param {any} context
 */
export function lessonNodes(context) {
  const all = (nodes) => (nodes || []).flatMap((node) => one(node) || []);

  function one(node) {
    if (typeof node === "string") return document.createTextNode(node);
    if (node.directive) return context.directive(node.directive);
    if (node.formula) return display(node.formula);
    if (node.math) return formula(node);
    if (node.number !== undefined) return el("data",
      { class: "ln-number", value: node.number, title: node.from, text: node.number });
    if (node.to) return link(node);
    if (!ELEMENTS.has(node.t)) return null;
    if (node.t === "table") return el("div", { class: "ln-table" }, el("table", {}, ...all(node.c)));
    return el(node.t, {}, ...all(node.c));
  }

  function link({ to, c }) {
    const href = context.href(to), outside = to.startsWith("https:");
    if (!href) return el("span", {}, ...all(c));
    return el("a", { href, target: outside ? "_blank" : null, rel: outside ? "noreferrer" : null, "data-to": outside
      ? null : to }, ...all(c));
  }

  function formula(node) {
    if (!FORMULA.has(node.math)) return null;
    const element = document.createElementNS(MATH, node.math);
    setAttributes(element, node.a || {});
    element.append(...all(node.c));
    const meaning = node.math === "mi" && context.symbols[node.c[0]];
    if (meaning) {
      setAttributes(element, { class: "ln-symbol", tabindex: 0 });
      context.glossary.tell(element, meaning);
    }
    return element;
  }

  /** A formula on a line of its own, and what its letters mean. */
  function display(node) {
    const used = [...new Set(lettersOf(node))].filter((letter) => context.symbols[letter]);
    const row = (letter) => el("div", {}, el("dt", {}, letterOf(letter)), el("dd", { text: context.symbols[letter] }));
    return el("figure", { class: "ln-formula" }, el("div", { class: "ln-formula-line" }, formula(node)),
      el("dl", {}, ...used.map(row)));
  }
  function letterOf(letter) {
    const math = document.createElementNS(MATH, "math"), mi = document.createElementNS(MATH, "mi");
    mi.textContent = letter;
    math.append(mi);
    return math;
  }
  const lettersOf = (node) => (typeof node === "string" ? []
    : [...(node.math === "mi" ? node.c : []), ...(node.c || []).flatMap(lettersOf)]);
  return all;
}

/**
 * A claim: a sentence that a finished run supports, and the values of that run.
 * @param {any} claim
 * @param {any} nodes
 */
export function lessonClaim(claim, nodes) {
  const holds = claim.holds.every((one) => one.true);
  const said =
    claim.holds.map((one) =>
      `${one.condition.replaceAll("_", " ").replace(/([a-z0-9])\.(?=[a-z])/g, "$1: ")} (it is ${one.is})`).join("; ");
  return el("aside", { class: "ln-claim", "data-holds": String(holds) },
    el("span", { class: "ln-claim-mark", "aria-hidden": "true", text: holds ? "✓" : "!" }),
    el("div", {}, el("p", {}, ...nodes(claim.text)),
      el("details", { class: "ln-quiet" }, el("summary",
        { text: `${holds ? "Checked on" : "No longer so in"} the run ${claim.example}` }),
        el("p", { text: `${said}.` }))));
}

// The legend: every kind of token in its shape, with its line in the text; and what the width of an edge means.
/** @import { Glossary } from "./view-types.d.ts" */
import { el, svgEl } from "./base.js";
import { legendChip } from "./chip.js";

/**
 * Each kind: its status, its look, and the word in its shape.
 * @type {[string, string?, string?][]}
 */
const KINDS = [["accepted"], ["rejected"], ["ignored"], ["recovered"], ["bonus"], ["bonus", "plain", "plain"],
  ["root"]];

/** The shape with the word in it; below it the line that such a token has in the text. */
function entry(glossary, [status, look = status, word = status]) {
  const term = glossary.term(look, "", legendChip(status, word, look),
    el("span", { class: "ds-legend-line", "data-status": status, "data-look": look === status ? null : look }));
  return el("li", {}, term);
}

const wedge = () => svgEl("svg",
  { class: "ds-legend-edge", viewBox: "0 0 34 12", width: 34, height: 12, "aria-hidden": "true" },
  svgEl("path", { d: "M0 6L34 2V10Z" }));

/**
 * What the width of an edge means.
 * @type {(glossary: Glossary) => Element}
 */
export const edgeKey = (glossary) => glossary.term("edge", "thicker: surer guess", wedge());

/** @type {(glossary: Glossary, ...more: Node[]) => Element} */
export const legend = (glossary, ...more) => el("ul", { class: "ds-legend", "aria-label": "Legend" },
  ...KINDS.map((kind) => entry(glossary, kind)),
  el("li", {}, glossary.term("underline", "underline in the text")), ...more.map((one) => el("li", {}, one)));

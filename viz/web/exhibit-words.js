// The exhibit "words": lines of text, which may hold tokens. Unknown and malformed exhibits are drawn in this way, too.
/** @import { Drawing } from "./view-types.d.ts" */
import { el } from "./base.js";
import { cellElement, listOf, shortText } from "./cells.js";

const LINES = 60;

/** @type {(exhibit: { lines: any[] }) => Drawing} */
export function wordsExhibit({ lines }) {
  const shown = listOf(lines).slice(0, LINES);
  const list = el("ul", { class: "ds-lines" },
    ...shown.map((line) => el("li", {}, ...(Array.isArray(line) ? line : [line]).map(cellElement))));
  return { content: list, left: lines.length - shown.length && `${lines.length - shown.length} more lines` };
}

/**
 * Any value in a few plain lines: "name: value", values as JSON and cut short.
 * @type {(value: unknown) => string[]}
 */
export function plainLines(value) {
  const short = (part) => shortText(typeof part === "string" ? part : String(JSON.stringify(part)), 160);
  if (!value || typeof value !== "object" || Array.isArray(value)) return [short(value)];
  return Object.entries(value).filter(([name]) => !["kind", "title", "note", "meter"].includes(name)).slice(0, 12)
    .map(([name, part]) => `${shortText(name, 40)}: ${short(part)}`);
}

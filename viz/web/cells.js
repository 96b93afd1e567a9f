// Cells of exhibits: a token, a text, a number, yes or no, nothing. Exhibits come with the trace, so every value is
// checked here.
import { el } from "./base.js";
import { runningText, shorten, visible } from "./words.js";

/**
 * The value, if the condition holds. Throws otherwise; the exhibit is then drawn as plain words.
 * @type {(condition: unknown, value?: any) => any}
 */
export function ensure(condition, value) {
  if (!condition) throw new TypeError("not as an exhibit should be");
  return value;
}
/** @type {(value: any) => boolean} */
export const isToken = (value) => Boolean(value) && typeof value === "object" && typeof value.piece === "string"
  && Number.isInteger(value.token);
/** @type {(value: unknown) => boolean} */
export const isNumber = (value) => typeof value === "number" && Math.abs(value) <= 1e15;   // NaN compares as false
/** @type {(value: unknown) => any[]} */
export const listOf = (value) => ensure(Array.isArray(value), value);
/** @type {(value: unknown) => number | null} */
export const numberOrNull = (value) => (value === null || value === undefined ? null : ensure(isNumber(value), value));
/** @type {(value: unknown, length?: number) => string} */
export const shortText = (value, length = 120) =>
  (typeof value === "string" ? shorten(runningText(value), length) : "");

/**
 * A number in the form that readers see: 12, 3.14, 0.40, 0.0042, 1.2e-7.
 * @type {(value: number) => string}
 */
export function numberText(value) {
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e9) return String(value);
  if (size >= 1e6 || size < 0.001) return value.toExponential(1);
  return size >= 100 ? String(Math.round(value)) : size >= 0.01 ? value.toFixed(2) : value.toPrecision(2);
}

/**
 * A cell as text, tokens with their white space visible.
 * @type {(cell: any) => string}
 */
export function cellText(cell) {
  if (cell === null || cell === undefined) return "–";
  if (typeof cell === "string") return shortText(cell, 400);
  if (typeof cell === "boolean") return cell ? "yes" : "no";
  if (typeof cell === "number") return ensure(isNumber(cell), numberText(cell));
  return ensure(isToken(cell), visible(cell.piece));
}

/** A token within text. It looks like a token of the tree before its verdict. */
const tokenWord = (cell) => el("span",
  { class: "ds-word", title: `token ${cell.token}`, text: shorten(visible(cell.piece), 24) });

/**
 * A cell as an element or a text node.
 * @type {(cell: unknown) => Node}
 */
export const cellElement = (cell) => (isToken(cell) ? tokenWord(cell) : document.createTextNode(cellText(cell)));

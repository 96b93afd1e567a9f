// Cells of exhibits: a token, a text, a number, yes or no, nothing. Exhibits come with the trace, so every value is checked here.
(function (D) {
  "use strict";

  /** The value, if the condition holds. Throws otherwise; the exhibit is then drawn as plain words. */
  D.require = function (condition, value) {
    if (!condition) throw new TypeError("not as an exhibit should be");
    return value;
  };
  D.isToken = (value) => Boolean(value) && typeof value === "object" && typeof value.piece === "string" && Number.isInteger(value.token);
  D.isNumber = (value) => typeof value === "number" && Math.abs(value) <= 1e15;   // NaN compares as false
  D.list = (value) => D.require(Array.isArray(value), value);
  D.numberOrNull = (value) => (value === null || value === undefined ? null : D.require(D.isNumber(value), value));
  D.words = (value, length = 120) => (typeof value === "string" ? D.shorten(D.running(value), length) : "");

  /** A number in the form that readers see: 12, 3.14, 0.40, 0.0042, 1.2e-7. */
  D.number = function (value) {
    const size = Math.abs(value);
    if (Number.isInteger(value) && size < 1e9) return String(value);
    if (size >= 1e6 || size < 0.001) return value.toExponential(1);
    return size >= 100 ? String(Math.round(value)) : size >= 0.01 ? value.toFixed(2) : value.toPrecision(2);
  };

  /** A cell as text, tokens with their white space visible. */
  D.cellText = function (cell) {
    if (cell === null || cell === undefined) return "–";
    if (typeof cell === "string") return D.words(cell, 400);
    if (typeof cell === "boolean") return cell ? "yes" : "no";
    if (typeof cell === "number") return D.require(D.isNumber(cell), D.number(cell));
    return D.require(D.isToken(cell), D.visible(cell.piece));
  };

  /** A token within text. It looks like a token of the tree before its verdict. */
  D.tokenWord = (cell) => D.el("span", { class: "ds-word", title: `token ${cell.token}`, text: D.shorten(D.visible(cell.piece), 24) });

  /** A cell as an element or a text node. */
  D.cell = (cell) => (D.isToken(cell) ? D.tokenWord(cell) : document.createTextNode(D.cellText(cell)));
})(globalThis.Draftscope);

// The exhibit "words": lines of text, which may hold tokens. Unknown and malformed exhibits are drawn in this way, too.
(function (D) {
  "use strict";
  const LINES = 60;
  D.EXHIBITS = D.EXHIBITS || {};

  D.EXHIBITS.words = function ({ lines }) {
    const shown = D.list(lines).slice(0, LINES);
    const list = D.el("ul", { class: "ds-lines" }, ...shown.map((line) => D.el("li", {}, ...(Array.isArray(line) ? line : [line]).map(D.cell))));
    return { content: list, left: lines.length - shown.length && `${lines.length - shown.length} more lines` };
  };

  /** Any value in a few plain lines: "name: value", values as JSON and cut short. */
  D.plainLines = function (value) {
    const short = (part) => D.words(typeof part === "string" ? part : String(JSON.stringify(part)), 160);
    if (!value || typeof value !== "object" || Array.isArray(value)) return [short(value)];
    return Object.entries(value).filter(([name]) => !["kind", "title", "note", "meter"].includes(name)).slice(0, 12)
      .map(([name, part]) => `${D.words(name, 40)}: ${short(part)}`);
  };
})(globalThis.Draftscope);

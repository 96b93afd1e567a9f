// The exhibit "table".
(function (D) {
  "use strict";
  const ROWS = 100, COLUMNS = 24;

  D.EXHIBITS.table = function ({ columns, rows }) {
    const names = D.list(columns).slice(0, COLUMNS), shown = D.list(rows).slice(0, ROWS);
    const number = names.map((_, i) => shown.some((row) => typeof row[i] === "number"));
    const body = shown.map((row) => D.el("tr", {}, ...D.list(row).slice(0, COLUMNS).map((cell, i) => D.el("td", { "data-number": number[i] }, D.cell(cell)))));
    const table = D.el("table", { class: "ds-table" },
      D.el("thead", {}, D.el("tr", {}, ...names.map((name, i) => D.el(name === "" ? "td" : "th", { scope: name === "" ? null : "col", "data-number": number[i], text: D.words(D.require(typeof name === "string", name), 60) })))),
      D.el("tbody", {}, ...body));
    return { content: table, wide: true, left: rows.length > ROWS && `${rows.length - ROWS} more rows` };
  };
})(globalThis.Draftscope);

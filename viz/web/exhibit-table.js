// The exhibit "table".
/** @import { Exhibit } from "./types.d.ts" */
/** @import { Drawing } from "./view-types.d.ts" */
import { el } from "./base.js";
import { cellElement, ensure, listOf, shortText } from "./cells.js";

const ROWS = 100, COLUMNS = 24;

/** @type {(exhibit: Exhibit) => Drawing} */
export function tableExhibit({ columns, rows }) {
  const names = listOf(columns).slice(0, COLUMNS), shown = listOf(rows).slice(0, ROWS);
  const number = names.map((_, i) => shown.some((row) => typeof row[i] === "number"));
  const body =
    shown.map((row) => el("tr", {}, ...listOf(row).slice(0, COLUMNS)
      .map((cell, i) => el("td", { "data-number": number[i] }, cellElement(cell)))));
  const table = el("table", { class: "ds-table" },
    el("thead", {}, el("tr", {},
      ...names.map((name, i) => el(name === "" ? "td" : "th",
        { scope: name === "" ? null : "col", "data-number": number[i],
          text: shortText(ensure(typeof name === "string", name), 60) })))),
    el("tbody", {}, ...body));
  return { content: table, wide: true, left: rows.length > ROWS && `${rows.length - ROWS} more rows` };
}

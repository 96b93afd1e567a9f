// A figure of a tuning: the picture, its numbers as a table, and buttons that save it as SVG, PNG or CSV.
/** @import { NumbersTable, TuneFigure } from "./types.d.ts" */
import { el, writeText } from "../base.js";
import { cellText } from "../cells.js";
import { chartPicture } from "../slides/pictures.js";
import { pngOf, saveBlob, slideOf } from "../slides/slide.js";

const ROWS = 500;   // that are shown; a file has all
const FORMULA = /^[=+\-@\t\r]/;   // a spreadsheet would compute it

/** A cell of a CSV file (RFC 4180). */
function csvCell(cell) {
  const text = cell === null || cell === undefined ? "" : String(cell);
  const plain = typeof cell === "string" && FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
}
/**
 * A table as the text of a CSV file.
 * @type {(table: NumbersTable) => string}
 */
export const csvText = ({ columns, rows }) =>
  [columns, ...rows].map((row) => `${row.map(csvCell).join(",")}\r\n`).join("");

/**
 * A table of numbers, in a box that scrolls sideways.
 * @type {(table: NumbersTable, name: string) => HTMLElement}
 */
export function numbersTable({ columns, rows: all }, name) {
  const rows = all.slice(0, ROWS);
  const isNumber = columns.map((_, i) => rows.some((row) => typeof row[i] === "number"));
  return el("div", { class: "tn-table", tabindex: 0, role: "group", "aria-label": name },
    el("table", { class: "ds-table" }, el("thead", {}, el("tr", {}, ...columns.map((column, i) =>
      el("th", { scope: "col", "data-number": isNumber[i], text: column })))),
    el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map((cell, i) =>
      (cell instanceof Element ? el("td", {}, cell)
        : el("td", { "data-number": isNumber[i], text: cellText(cell) }))))))));
}

/** Save the picture in the colours that are on the screen. */
async function save(kind, shown, { key, title, note, svg, table }, said) {
  const name = `draftscope-tune-${key}`;
  try {
    if (kind === "csv") saveBlob(new Blob([csvText(table)], { type: "text/csv" }), `${name}.csv`);
    else {
      const root = shown.closest(".ds"), dark = getComputedStyle(root).colorScheme.trim() === "dark";
      const text = slideOf({ key, name: title, root, draw: () => ({ ...chartPicture(svg), told: [note] }) },
        dark ? "dark" : "light", title);
      saveBlob(kind === "svg" ? new Blob([text], { type: "image/svg+xml" }) : await pngOf(text), `${name}.${kind}`);
    }
    writeText(said, "Saved.");
  } catch { writeText(said, "It could not be saved; try again."); }
}

/**
 * @param {TuneFigure} figure
 * @param {Element | null} [control] stands above the picture
 */
export function tuneFigure(figure, control = null) {
  const { key, title, note, body, summary, keys, readout, table } = figure, said = el("span", { role: "status" });
  const box = el("div", { class: "tn-box", tabindex: 0, role: "group", "aria-label": `${title}. ${summary}` }, body);
  if (keys) box.addEventListener("keydown", keys);
  const shown = el("figure", { class: "tn-figure ds-card", "data-figure": key }, el("figcaption", { text: title }),
    control, box, readout, el("p", { class: "ln-quiet", text: note }));
  const button = (kind) => el("button", { type: "button", class: "ln-button", text: kind.toUpperCase(),
    "aria-label": `Save “${title}” as ${kind.toUpperCase()}`, onclick: () => save(kind, shown, figure, said) });
  shown.append(el("div", { class: "tn-under" }, el("details", {}, el("summary", { text: "The numbers" }),
    numbersTable(table, `${title}: the numbers`)), el("span", { class: "tn-save" }, button("svg"), button("png"),
    button("csv"), said)));
  return shown;
}

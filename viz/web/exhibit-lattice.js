// The exhibit "lattice": the candidates of every position as columns, and the path that was chosen through them.
/** @import { Exhibit } from "./types.d.ts" */
/** @import { Drawing } from "./view-types.d.ts" */
import { svgEl } from "./base.js";
import { ensure, isToken, listOf, numberOrNull } from "./cells.js";
import { FONT } from "./chip.js";
import { plural, prob, shorten, textWidth, visible } from "./words.js";

const COLUMNS = 32, CHOICES = 10, ROW = 44, CHIP = 28, GAP = 26, TOP = 24;

/** @type {(exhibit: Exhibit) => Drawing} */
export function latticeExhibit(exhibit) {
  const columns = listOf(exhibit.columns).slice(0, COLUMNS).map((column) => listOf(column).slice(0, CHOICES));
  const path = exhibit.path === undefined ? [] : listOf(exhibit.path).slice(0, columns.length);
  columns.flat().forEach((choice) => { ensure(isToken(choice)); numberOrNull(choice.p); });
  const labels = columns.map((column) => column.map((choice) => shorten(visible(choice.piece), 12)));
  const widths = labels.map((column) => Math.max(44, ...column.map((text) => textWidth(text, FONT) + 20)));
  const middles = [];
  let x = 2;
  for (const width of widths) { middles.push(x + width / 2); x += width + GAP; }
  const width = Math.max(0, x - GAP) + 2, height = TOP + Math.max(1, ...columns.map((column) => column.length)) * ROW;
  const y = (row) => TOP + row * ROW + CHIP / 2 + 1;
  const chosen = path.map((row, c) => (Number.isInteger(row) && columns[c][row] ? row : null));

  const text = (at, down, content, more) =>
    svgEl("text", { x: at, y: down, dy: "0.35em", "text-anchor": "middle", ...more, text: content });
  let line = "";
  chosen.forEach((row, c) => {
    if (row === null || c + 1 >= chosen.length || chosen[c + 1] === null) return;
    const from = middles[c] + widths[c] / 2, to = middles[c + 1] - widths[c + 1] / 2, bend = (to - from) / 2;
    line += `M${from} ${y(row)}C${from + bend} ${y(row)} ${to - bend} ${y(chosen[c + 1])} ${to} ${y(chosen[c + 1])}`;
  });
  const chips =
    columns.flatMap((column, c) =>
      column.map((choice, row) => svgEl("g", { class: "ds-choice-chip", "data-chosen": row === chosen[c] },
        svgEl("rect", { x: middles[c] - widths[c] / 2, y: y(row) - CHIP / 2, width: widths[c], height: CHIP, rx: 6 }),
        text(middles[c], y(row), labels[c][row], { class: "ds-label" }),
        choice.p !== null && choice.p !== undefined
          && text(middles[c], y(row) + CHIP / 2 + 7, prob(choice.p), { class: "ds-odds" }))));
  const svg = svgEl("svg",
    { class: "ds-lattice", width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" },
    svgEl("path", { class: "ds-lattice-path", d: line }),
    ...columns.map((_, c) => text(middles[c], 9, c + 1, { class: "ds-odds" })), ...chips);
  const told = chosen.map((row, c) => (row === null ? "–" : visible(columns[c][row].piece))).join(" ");
  const most = Math.max(0, ...columns.map((column) => column.length));
  const summary = `${plural(exhibit.columns.length, "position")}, up to ${most} candidates each.` +
    (told ? ` Chosen path: ${told}.` : "");
  const left = exhibit.columns.length > COLUMNS && `${exhibit.columns.length - COLUMNS} more positions`;
  return { content: svg, summary, wide: true, left };
}

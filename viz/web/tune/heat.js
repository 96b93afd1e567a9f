// A heat map of gains: blue where drafting pays, orange where it hurts, and a line between the two. Every cell has its
// number, so the colours are not needed. A cell that is rough has no shade, and no line beside it.
/** @import { Grid, SettingLine } from "./types.d.ts" */
import { clamp, el, setAttributes, svgEl, writeText } from "../base.js";
import { FONT } from "../chip.js";
import { shorten, textWidth } from "../words.js";

const WIDE = 62, HIGH = 34, SHADES = 4, LARGER = 1.35, SLOPE = 35;

/**
 * A gain in words: 1.84×.
 * @type {(ratio: number) => string}
 */
export const gainText = (ratio) => `${ratio >= 100 ? Math.round(ratio) : ratio.toFixed(ratio >= 10 ? 1 : 2)}×`;

/** From -SHADES (half as fast or slower) to SHADES (three times as fast or more); 0: no difference to see. */
function shadeOf(ratio) {
  const strength = ratio >= 1 ? Math.log(ratio) / Math.log(3) : Math.log(Math.max(ratio, 0.01)) / Math.log(2);
  return Math.abs(ratio - 1) < 0.02 ? 0 : Math.sign(strength) * Math.ceil(clamp(Math.abs(strength), 0, 1) * SHADES);
}

/** The line between neighbours of which one pays and the other does not. */
function edge(cells, rough, left, top) {
  const pays = (r, c) => (cells[r]?.[c] && !rough(cells[r][c]) ? cells[r][c].ratio >= 1 : null);
  const differ = (a, b) => a !== null && b !== null && a !== b;
  let path = "";
  cells.forEach((row, r) => row.forEach((_, c) => {
    const x = left + c * WIDE, y = top + r * HIGH;
    if (differ(pays(r, c), pays(r, c + 1))) path += `M${x + WIDE} ${y}v${HIGH}`;
    if (differ(pays(r, c), pays(r + 1, c))) path += `M${x} ${y + HIGH}h${WIDE}`;
  }));
  return path;
}

const words = (x, y, text, more) => svgEl("text", { x, y, dy: "0.35em", ...more, text });

/**
 * text(cell): what is written in a cell. rough(cell): whether its gain is hardly known. answered(cell): whether it is
 * the answer. rows, columns: their names. told(cell): a cell in words; link(cell): what stands beside these words, or
 * null. Returns {svg, readout, keys}: readout tells the chosen cell; keys moves the choice.
 * @param {{ grid: Grid, text: (cell: SettingLine) => string, rough: (cell: SettingLine) => boolean,
 *   answered: (cell: SettingLine) => boolean, rows: string[], columns: string[], rowLabel: string, columnLabel: string,
 *   told: (cell: SettingLine) => string, link: (cell: SettingLine) => Element | null }} spec
 */
export function heatMap({ grid, text, rough, answered, rows, columns, rowLabel, columnLabel, told, link }) {
  const { cells } = grid, left = 30 + Math.max(30, ...rows.map((name) => textWidth(name, FONT)));
  const names = columns.map((name) => shorten(name, 22));
  const longest = Math.max(...names.map((name) => textWidth(name, FONT)));
  const slopes = longest > WIDE - 4, slope = (SLOPE * Math.PI) / 180;   // where names are long, they lean
  const top = 34 + (slopes ? longest * Math.sin(slope) : 10);
  const width = left + columns.length * WIDE + (slopes ? Math.max(0, longest * Math.cos(slope) - WIDE / 2) : 0) + 4;
  const label = textWidth(rowLabel, FONT), height = Math.max(top + rows.length * HIGH + 4, label + 8);
  const middle = Math.min(top + (rows.length * HIGH) / 2, height - label / 2 - 4);
  const box = (r, c) => ({ x: left + c * WIDE + 1, y: top + r * HIGH + 1, width: WIDE - 2, height: HIGH - 2, rx: 3 });
  const shade = (cell) => (!cell ? "none" : rough(cell) ? "rough" : shadeOf(cell.ratio));
  const ink = (cell) => (Math.abs(Number(shade(cell))) === SHADES ? "tn-on-shade" : "tn-in-cell");
  const drawn = cells.flatMap((row, r) => row.map((cell, c) => svgEl("g", {},
    svgEl("rect", { class: "tn-cell", "data-shade": shade(cell), ...box(r, c) }),
    cell && words(left + (c + 0.5) * WIDE, top + (r + 0.5) * HIGH, text(cell),
      { "text-anchor": "middle", class: rough(cell) ? "tn-rough" : ink(cell) }),
    cell && cell.checked !== null && words(left + (c + 1) * WIDE - 11, top + r * HIGH + 8, "✓",
      { "text-anchor": "middle", class: `tn-checked ${ink(cell)}` }))));
  const frames = cells.flatMap((row, r) => row.map((cell, c) => cell && answered(cell)
    && svgEl("rect", { class: "tn-answered", ...box(r, c) })));
  const ring = svgEl("rect", { class: "tn-ring", visibility: "hidden" });
  const svg = svgEl("svg",
    { class: "ln-chart tn-heat", viewBox: `0 0 ${width} ${height}`, width, "aria-hidden": "true" },
    ...drawn, svgEl("path", { class: "tn-edge", d: edge(cells, rough, left, top) }), ...frames, ring,
    ...rows.map((name, r) => words(left - 8, top + (r + 0.5) * HIGH, name, { "text-anchor": "end" })),
    ...names.map((name, c) => (slopes
      ? words(0, 0, name, { transform: `translate(${left + (c + 0.5) * WIDE - 4} ${top - 10}) rotate(-${SLOPE})` })
      : words(left + (c + 0.5) * WIDE, top - 10, name, { "text-anchor": "middle" }))),
    words(left + (columns.length * WIDE) / 2, 10, columnLabel, { "text-anchor": "middle", class: "ln-axis-label" }),
    words(10, middle, rowLabel, { "text-anchor": "middle", class: "ln-axis-label",
      transform: `rotate(-90 10 ${middle})` }));
  svg.style.width = `max(${width}px, min(100%, ${Math.round(LARGER * width)}px))`;
  const said = el("span", { "aria-live": "polite", text: "Point at a cell, or move with the arrow keys." });
  const beside = el("span", { class: "tn-beside" });
  let r = -1, c = -1;

  function choose(row, column) {
    if (row === r && column === c) return;
    [r, c] = [row, column];
    const cell = cells[r]?.[c] || null, there = r in cells && c in cells[r];
    setAttributes(ring, { visibility: there ? "visible" : "hidden", ...(there ? box(r, c) : {}) });
    if (!there) return;
    writeText(said, cell ? told(cell) : "Not measured.");
    beside.replaceChildren(...[cell && link(cell)].filter(Boolean));
  }
  svg.addEventListener("pointermove", (event) => {
    const { left: x, top: y, width: wide } = svg.getBoundingClientRect(), unit = width / (wide || 1);
    const row = Math.floor(((event.clientY - y) * unit - top) / HIGH);
    const column = Math.floor(((event.clientX - x) * unit - left) / WIDE);
    if (cells[row]?.[column] !== undefined) choose(row, column);
  });
  const keys = (event) => {
    const [down, right] = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key]
      || [0, 0];
    if ((!down && !right) || event.ctrlKey || event.metaKey || event.altKey || !cells.length) return;
    event.preventDefault();
    choose(clamp(r + down, 0, cells.length - 1), clamp(c + right, 0, cells[0].length - 1));
  };
  return { svg, keys, readout: el("p", { class: "tn-readout" }, said, " ", beside) };
}

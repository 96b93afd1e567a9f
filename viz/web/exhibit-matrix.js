// The exhibit "matrix": values as shades. All cells of one shade are one path, so a dozen elements draw a thousand.
/** @import { Exhibit } from "./types.d.ts" */
/** @import { Drawing } from "./view-types.d.ts" */
import { clamp, el, setAttributes, svgEl, writeText } from "./base.js";
import { cellText, ensure, listOf, numberOrNull, numberText } from "./cells.js";
import { FONT } from "./chip.js";
import { shorten, textWidth } from "./words.js";

const MOST = 96, SHADES = 8, LABELLED = 28, WRITTEN = 120;

/** Shade of a value: 0 = nothing, SHADES = the largest value; negative values have shades of their own. */
const shadeOf = (value, most) => (most > 0 ? Math.sign(value) * Math.ceil((Math.abs(value) / most) * SHADES) : 0);

function largest(values) {
  let best = null;
  values.forEach((row, r) => row.forEach((value, c) => {
    if (value !== null && (!best || Math.abs(value) > Math.abs(best.value))) best = { value, r, c };
  }));
  return best;
}

/** @type {(exhibit: Exhibit) => Drawing} */
export function matrixExhibit(exhibit) {
  const rows = listOf(exhibit.rows).slice(0, MOST).map(cellText);
  const columns = listOf(exhibit.columns).slice(0, MOST).map(cellText);
  const values = listOf(exhibit.values).slice(0, MOST).map((row) => listOf(row).slice(0, MOST).map(numberOrNull));
  ensure(values.length === rows.length && values.every((row) => row.length === columns.length));
  const best = largest(values), most = best ? Math.abs(best.value) : 0;
  const written = rows.length * columns.length <= WRITTEN, labelled = Math.max(rows.length, columns.length) <= LABELLED;
  const wide = written ? 46 : labelled ? clamp(Math.floor(340 / Math.max(rows.length, columns.length, 1)), 12, 22) : 9;
  const high = written ? 25 : wide;
  const label = (text) => shorten(text, 12);
  // then the names of columns stand on end
  const across = columns.some((text) => textWidth(label(text), FONT) > wide - 4);
  const left = labelled ? 10 + Math.max(20, ...rows.map((text) => textWidth(label(text), FONT))) : 26;
  const top = !labelled ? 18 : across ? 10 + Math.max(...columns.map((text) => textWidth(label(text), FONT))) : 22;
  const width = left + columns.length * wide + 2, height = top + rows.length * high + 2;

  const paths = new Map();
  values.forEach((row, r) => row.forEach((value, c) => {
    const shade = value === null ? "none" : shadeOf(value, most);
    paths.set(shade,
      `${paths.get(shade) || ""}M${left + c * wide} ${top + r * high}h${wide - 1}v${high - 1}h${1 - wide}z`);
  }));
  const text = (x, y, content, more) => svgEl("text", { x, y, dy: "0.35em", ...more, text: content });
  const every = labelled ? 1 : 10;
  const names = [
    ...rows.map((name, r) => r % every === 0 && text(left - 6, top + (r + 0.5) * high, labelled ? label(name) : r + 1,
      { "text-anchor": "end" })),
    ...columns.map((name, c) => {
      const x = left + (c + 0.5) * wide - 0.5;
      return c % every === 0 && (labelled && across
        ? text(0, 0, label(name), { transform: `translate(${x} ${top - 6}) rotate(-90)` })
        : text(x, top - 10, labelled ? label(name) : c + 1, { "text-anchor": "middle" }));
    }),
  ];
  const numbers = !written ? []
    : values.flatMap((row, r) => row.map((value, c) => value !== null
      && text(left + (c + 0.5) * wide - 0.5, top + (r + 0.5) * high - 0.5, numberText(value),
        { "text-anchor": "middle", class: Math.abs(shadeOf(value, most)) > SHADES / 2 ? "ds-on-shade"
          : "ds-in-cell" })));
  const ring = svgEl("rect", { class: "ds-cell-ring", width: wide, height: high, visibility: "hidden" });
  const svg = svgEl("svg",
    { class: "ds-matrix", width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" },
    ...[...paths].map(([shade, d]) => svgEl("path", { d, class: "ds-shade", "data-shade": shade })), ...names,
    ...numbers, ring);
  const at = (r, c) => `${rows[r]} → ${columns[c]}: ${values[r][c] === null ? "nothing" : numberText(values[r][c])}`;
  const scale = best ? `Strongest shade: ${numberText(best.value)}.` : "Nothing in it.";
  const readout = el("p", { class: "ds-quiet ds-readout", "aria-live": "polite", text: scale });
  const summary = `${rows.length} rows by ${columns.length} columns.` +
    (best ? ` The largest value: ${at(best.r, best.c)}.` : "");
  const content = el("div", {}, svg, readout);

  let r = -1, c = -1;
  function read(row, column) {
    r = row; c = column;
    const inside = r >= 0 && c >= 0 && r < rows.length && c < columns.length;
    setAttributes(ring, { visibility: inside ? "visible" : "hidden", x: left + c * wide - 0.5, y: top +
      r * high - 0.5 });
    writeText(readout, inside ? at(r, c) : scale);
  }
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect(), unit = width / (box.width || 1);
    read(Math.floor(((event.clientY - box.top) * unit - top) / high),
      Math.floor(((event.clientX - box.left) * unit - left) / wide));
  });
  svg.addEventListener("pointerleave", () => read(-1, -1));
  const move = (event) => {
    const [down, right] = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key]
      || [0, 0];
    if ((!down && !right) || event.ctrlKey || event.metaKey || event.altKey || !rows.length || !columns.length) return;
    event.preventDefault();
    read(clamp(r + down, 0, rows.length - 1), clamp(c + right, 0, columns.length - 1));
  };
  return { content, summary, wide: true, keys: move, hint: "Arrow keys read the cells.",
    left: (exhibit.rows.length > MOST || exhibit.columns.length > MOST)
      && `the first ${rows.length} by ${columns.length} of ${exhibit.rows.length} by ${exhibit.columns.length}` };
}

// The exhibit "layers": one box per layer of the target, lowest first, with the layer's state. The states differ in
// shape, not only in colour.
/** @import { Exhibit } from "./types.d.ts" */
/** @import { Drawing } from "./view-types.d.ts" */
import { clamp, el, svgEl } from "./base.js";
import { ensure, listOf, numberOrNull, numberText, shortText } from "./cells.js";
import { plural } from "./words.js";

const MOST = 160, STATES = ["run", "skipped", "exit", "adapter"], HIGH = 34, BAR = 34;

/** @type {(exhibit: Exhibit) => Drawing} */
export function layersExhibit({ layers }) {
  const shown = listOf(layers).slice(0, MOST).map((layer) => {
    ensure(layer && STATES.includes(layer.state));
    return { state: layer.state, label: shortText(layer.label, 60), value: numberOrNull(layer.value) };
  });
  const wide = clamp(Math.floor(420 / Math.max(1, shown.length)), 9, 26);
  const most = Math.max(0, ...shown.map(({ value }) => Math.abs(value || 0)));
  const top = most > 0 ? BAR + 6 : 4, width = Math.max(1, shown.length) * wide + 2, height = top + HIGH + 20;
  const text = (x, y, content) =>
    svgEl("text", { class: "ds-odds", x, y, dy: "0.35em", "text-anchor": "middle", text: content });
  const boxes = shown.map(({ state, label, value }, i) => {
    const x = 1 + i * wide, w = wide - 3, title = svgEl("title", {});
    title.textContent =
      `layer ${i}: ${state}${label ? `, ${label}` : ""}${value === null ? "" : `, ${numberText(value)}`}`;
    const bar = value === null || !most ? 0 : (Math.abs(value) / most) * BAR;
    return svgEl("g", { class: "ds-layer", "data-state": state }, title,
      bar > 0 && svgEl("rect", { class: "ds-layer-value", x, y: top - 4 - bar, width: w, height: bar }),
      svgEl("rect", { class: "ds-layer-box", x, y: top, width: w, height: HIGH, rx: Math.min(4, w / 3) }),
      state === "exit" && svgEl("path",
        { class: "ds-layer-mark", d: `M${x + w / 2 - 4} ${top + HIGH / 2}h8m-3 -3.5l3.5 3.5l-3.5 3.5` }),
      state === "adapter" && svgEl("path",
        { class: "ds-layer-mark", d: `M${x + w / 2 - 4} ${top + HIGH / 2}h8M${x + w / 2} ${top + HIGH / 2 - 4}v8` }));
  });
  const every = wide >= 20 ? 1 : shown.length > 80 ? 10 : 5;
  const numbers = shown.map((_, i) => i % every === 0 && text(1 + i * wide + (wide - 3) / 2, top + HIGH + 11, i));
  const svg = svgEl("svg",
    { class: "ds-layers", width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" }, ...boxes,
    ...numbers);
  const counted = STATES.map((state) => [state, shown.filter((layer) => layer.state === state).length])
    .filter(([, count]) => count);
  const key = el("p", { class: "ds-quiet ds-layer-key" }, ...counted.map(([state, count]) => el("span", {},
    svgEl("svg", { width: 14, height: 14, viewBox: "0 0 14 14", "aria-hidden": "true" },
      svgEl("g", { class: "ds-layer", "data-state": state },
        svgEl("rect", { class: "ds-layer-box", x: 1, y: 1, width: 12, height: 12, rx: 3 }),
        state === "exit" && svgEl("path", { class: "ds-layer-mark", d: "M3.5 7h7m-3 -3l3 3l-3 3" }),
        state === "adapter" && svgEl("path", { class: "ds-layer-mark", d: "M4 7h6M7 4v6" }))),
    `${count} ${state}`)));
  const where = shown.flatMap(({ state }, i) => (state === "exit" ? [i] : []));
  const values = shown.some(({ value }) => value !== null) ? " Bars: the value of each layer." : "";
  const states = counted.map(([state, count]) => `${count} ${state}`).join(", ");
  const exits = where.length ? ` Exit after layer ${where.join(", ")}.` : "";
  return { content: el("div", {}, svg, key), wide: true,
    summary: `${plural(layers.length, "layer")}: ${states}.${exits}${values}`,
    left: layers.length > MOST && `${layers.length - MOST} more layers` };
}

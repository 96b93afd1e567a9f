// The exhibit "curve": lines over one axis. Each line has its own dashes and a name, so that colours are not needed.
/** @import { Exhibit } from "./types.d.ts" */
/** @import { Drawing } from "./view-types.d.ts" */
import { clamp, el, svgEl } from "./base.js";
import { ensure, isNumber, listOf, numberOrNull, numberText, shortText } from "./cells.js";
import { plural } from "./words.js";

const LINES = 6, POINTS = 1500, WIDE = 340, HIGH = 150, LEFT = 46, RIGHT = 12, TOP = 8, BELOW = 20;

/** @param {Exhibit} exhibit */
function read({ x, series }) {
  const axis = listOf(x).slice(0, POINTS);
  axis.forEach((number) => ensure(isNumber(number)));
  const lines = listOf(series).slice(0, LINES).map((one) => {
    const y = listOf(ensure(one && typeof one === "object", one).y).slice(0, POINTS).map(numberOrNull);
    return { name: shortText(one.name, 40) || "line", y: ensure(y.length === axis.length, y) };
  });
  return { axis, lines };
}

/** @type {(exhibit: Exhibit) => Drawing} */
export function curveExhibit(exhibit) {
  const { axis, lines } = read(exhibit), mark = numberOrNull(exhibit.mark);
  const all = lines.flatMap(({ y }) => y.filter((number) => number !== null));
  ensure(axis.length && all.length);
  const ends = (numbers) => {
    const low = Math.min(...numbers), high = Math.max(...numbers);
    return high > low ? [low, high] : [low - 0.5, high + 0.5];
  };
  const [x0, x1] = ends(mark === null ? axis : [...axis, mark]);
  const [y0, y1] = ends(all.every((number) => number >= 0) ? [0, ...all] : all);
  const px = (value) => LEFT + ((value - x0) / (x1 - x0)) * (WIDE - LEFT - RIGHT);
  const py = (value) => TOP + (1 - (value - y0) / (y1 - y0)) * (HIGH - TOP - BELOW);
  const text = (x, y, content, anchor) =>
    svgEl("text", { class: "ds-odds", x, y, dy: "0.35em", "text-anchor": anchor, text: content });
  const drawn = lines.map(({ y }, i) => {
    let path = "", pen = "M";
    const alone = [];
    y.forEach((value, k) => {
      if (value === null) { pen = "M"; return; }
      path += `${pen}${px(axis[k]).toFixed(1)} ${py(value).toFixed(1)}`;
      pen = "L";
      if ((y[k - 1] ?? null) === null && (y[k + 1] ?? null) === null)
        alone.push(svgEl("circle", { class: "ds-curve-dot", "data-line": i, cx: px(axis[k]), cy: py(value), r: 3 }));
    });
    return svgEl("g", {}, svgEl("path", { class: "ds-curve-line", "data-line": i, d: path }), ...alone);
  });
  const floor = HIGH - BELOW;
  const svg = svgEl("svg",
    { class: "ds-curve", width: WIDE, height: HIGH, viewBox: `0 0 ${WIDE} ${HIGH}`, "aria-hidden": "true" },
    svgEl("path", { class: "ds-axis", d: `M${LEFT} ${TOP}V${floor}H${WIDE - RIGHT}` }),
    text(LEFT - 6, py(y1), numberText(y1), "end"), text(LEFT - 6, floor, numberText(y0), "end"),
    text(LEFT, HIGH - 8, numberText(x0), "middle"), text(WIDE - RIGHT, HIGH - 8, numberText(x1), "end"),
    mark !== null && svgEl("path", { class: "ds-curve-mark", d: `M${px(mark)} ${TOP}V${floor}` }),
    mark !== null && text(clamp(px(mark), LEFT + 24, WIDE - RIGHT - 40), HIGH - 8, numberText(mark), "middle"),
    ...drawn);
  const named = [shortText(exhibit.y_label, 60), shortText(exhibit.x_label, 60)];
  const key = el("p", { class: "ds-quiet ds-curve-key" }, ...lines.map(({ name }, i) => el("span", {},
    svgEl("svg", { width: 26, height: 8, viewBox: "0 0 26 8", "aria-hidden": "true" },
      svgEl("path", { class: "ds-curve-line", "data-line": i, d: "M1 4H25" })), name)));
  const over = named[0] && named[1] ? `${named[0]} over ${named[1]}` : named[0] || named[1];
  const said = lines.map(({ name, y }) => {
    const there = y.filter((number) => number !== null);
    return there.length ? `${name}: from ${numberText(there[0])} to ${numberText(there[there.length - 1])}`
      : `${name}: nothing`;
  });
  const marked = mark === null ? "" : ` Mark at ${numberText(mark)}.`;
  return { content: el("div", {}, svg, over && el("p", { class: "ds-quiet", text: over }), key), wide: true,
    summary: `${plural(exhibit.series.length, "line")}. ${said.join(". ")}.${marked}`,
    left: exhibit.x.length > POINTS && "only the beginning is drawn" };
}

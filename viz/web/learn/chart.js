// A small chart of lines over one axis, drawn as SVG, which the instruments of the lessons share.
/** @import { SliderSpec } from "../view-types.d.ts" */
import { clamp, el, freshId, svgEl, writeText } from "../base.js";

const HIGH = 330, LEFT = 58, RIGHT = 18, TOP = 16, BELOW = 48;
const LETTER = 7.5, AIR = 3;   // the width of a letter of a mark's words; the room around them

/**
 * A chart's width in drawing units: fewer on a phone, so that its letters stay legible.
 * @type {() => number}
 */
export const chartWidth = () => (innerWidth < 560 ? 360 : 640);

/**
 * Places along a line, close together.
 * @type {(points: number[][]) => number[][]}
 */
const alongLine = (points) => points.slice(1).flatMap(([x, y], i) => Array.from({ length: 24 }, (_, k) =>
  [x + (points[i][0] - x) * k / 24, y + (points[i][1] - y) * k / 24]));

/**
 * x, y: {low, high, ticks: [[value, text]], label, log}. lines: [{name, points: [[x, y]], dots, spread: [[x, low,
 * high]]}]. marks: [{at, words, kind}], their words above the place or below it, where fewer lines run. told: the
 * text for screen readers. Returns the <svg>.
 * @param {any} spec
 */
export function lessonChart({ x, y, lines, marks = [], told }) {
  const WIDE = chartWidth();
  const along = ({ low, high, log }, value) =>
    (log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low));
  const px = (value) => LEFT + clamp(along(x, value), 0, 1) * (WIDE - LEFT - RIGHT);
  const py = (value) => HIGH - BELOW - clamp(along(y, value), 0, 1) * (HIGH - TOP - BELOW);
  const text = (at, down, words, anchor, extra) =>
    svgEl("text", { x: at, y: down, "text-anchor": anchor, ...extra, text: words });
  const grid =
    y.ticks.flatMap(([value, words]) =>
      [svgEl("path", { class: "ln-grid", d: `M${LEFT} ${py(value)}H${WIDE - RIGHT}` }),
        text(LEFT - 8, py(value) + 4, words, "end")]);
  const foot = x.ticks.map(([value, words]) => text(px(value), HIGH - BELOW + 20, words, "middle"));
  const bar = ([at, low, high]) => `M${px(at) - 4} ${py(low)}h8M${px(at)} ${py(low)}V${py(high)}m-4 0h8`;
  const drawn = lines.map(({ points, dots, name, spread }, i) => svgEl("g", { "data-line": i, class: "ln-line-group" },
    spread && svgEl("path", { class: "ln-spread", "data-line": i, d: spread.map(bar).join("") }),
    svgEl("path", { class: "ln-line", "data-line": i,
      d: points.map(([a, b], k) => `${k ? "L" : "M"}${px(a).toFixed(1)} ${py(b).toFixed(1)}`).join("") }),
    ...(dots ? points.map(([a, b]) => svgEl("circle", { class: "ln-dot", "data-line": i, cx: px(a), cy: py(b), r: 4 }))
      : []), svgEl("title", { text: name })));
  const traced = lines.flatMap(({ points }) => alongLine(points.map(([a, b]) => [px(a), py(b)])));
  const pins = marks.map(({ at, words, kind }) => {
    const middle = clamp(px(at[0]), LEFT + 40, WIDE - RIGHT - 50), above = py(at[1]) - 14, below = py(at[1]) + 23;
    const crossed = (down) => traced.filter(([a, b]) =>
      Math.abs(a - middle) < words.length * LETTER / 2 + AIR && b > down - 11 - AIR && b < down + AIR).length;
    const free = below > HIGH - BELOW - 4 || crossed(above) <= crossed(below) ? above : below;
    return svgEl("g", { class: "ln-pin", "data-kind": kind },
      svgEl("circle", { cx: px(at[0]), cy: py(at[1]), r: 7 }), text(middle, free, words, "middle"));
  });
  return svgEl("svg", { class: "ln-chart", viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", "aria-label": told },
    ...grid, svgEl("path", { class: "ln-axis", d: `M${LEFT} ${TOP}V${HIGH - BELOW}H${WIDE - RIGHT}` }), ...foot,
    text((LEFT + WIDE - RIGHT) / 2, HIGH - 8, x.label, "middle", { class: "ln-axis-label" }),
    text(14, TOP + (HIGH - TOP - BELOW) / 2, y.label, "middle",
      { class: "ln-axis-label", transform: `rotate(-90 14 ${TOP + (HIGH - TOP - BELOW) / 2})` }),
    ...drawn, ...pins);
}

/**
 * The names of a chart's lines, each beside a piece of its line.
 * @type {(names: string[]) => Element}
 */
export const chartKey = (names) => el("p", { class: "ln-key" }, ...names.map((name, i) => el("span", {},
  svgEl("svg", { width: 30, height: 10, viewBox: "0 0 30 10", "aria-hidden": "true" },
    svgEl("path", { class: "ln-line", "data-line": i, d: "M1 5H29" })), name)));

/**
 * A slider with its name and its value in words; unset: text until it is moved. Returns {element, input, set}.
 * @param {SliderSpec} spec
 */
export function lessonSlider({ label, low, high, step, value, told = String, unset = "", onInput }) {
  const id = freshId("slider"), output = el("output", { for: id });
  const input = el("input", { id, type: "range", min: low, max: high, step, value, oninput: () => {
    say();
    onInput(Number(input.value));
  } });
  const say = () => {
    const words = told(Number(input.value));
    writeText(output, words);
    input.setAttribute("aria-valuetext", words);
  };
  if (unset) { writeText(output, unset); input.setAttribute("aria-valuetext", unset); } else say();
  return { input, element: el("div", { class: "ln-slider" }, el("label", { for: id, text: label }), input, output),
    set(next) { if (Number(input.value) !== next) input.value = next; say(); } };
}

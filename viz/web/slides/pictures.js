// The pictures of a page that can be saved: draft trees and icicles, races, charts of the lessons, plotly figures. Each
// becomes {key, name, root, draw()}; draw gives {width, height, parts, keys, told}: the parts of the picture, its key,
// and the sentences about it.
/** @import { Picture } from "../view-types.d.ts" */
import { clamp, setAttributes, svgEl } from "../base.js";
import { FONT } from "../chip.js";
import { plainCopy } from "./copy.js";
import { duration, textWidth } from "../words.js";

const EDGE = 14, MONO = "ui-monospace, Menlo, Consolas, monospace";
const seen = (element) => {
  const { width, height } = element.getBoundingClientRect();
  return width > 100 && height > 30;
};
const all = (element, selector) => [...element.querySelectorAll(selector)].filter(seen);
const said = (element, selector) => {
  const found = element && element.querySelector(selector);
  return found && !found.closest("[hidden]") ? found.textContent.trim() : "";
};

/**
 * A line of text in a slide.
 * @type {(x: number, y: number, words: string, size: number, fill: string, more?: object) => Element}
 */
export const slideText = (x, y, words, size, fill, more) =>
  svgEl("text", { x, y, "font-size": size, fill, ...more, text: words });
const place = (copy, attributes) => setAttributes(copy, attributes);

/**
 * The chips of a legend, or the lines of a chart's key: [[svg, words]].
 * @type {(list: ParentNode | null, selector: string) => [Element, string][]}
 */
const keysOf = (list, selector) => (list ? [...list.querySelectorAll(selector)] : [])
  .map((one) => [one.matches("svg") ? one : one.querySelector("svg"), one.matches("svg") ? ""
    : one.textContent.trim()]);

/** The whole tree, including the part beyond the edge of its canvas; the icicle always fills its canvas. */
function tree(svg) {
  const stage = [...svg.children].find((one) => one.getAttribute("display") !== "none");
  const icicle = stage !== svg.children[0];
  const { clientWidth: wide, clientHeight: high } = svg, lane = svg.closest("[data-lane], [data-run]");
  const root = stage.querySelector(".ds-chips > [data-root]"), pinned = root && root.getAttribute("transform");
  if (root) root.setAttribute("transform", "translate(0 0)");
  const { x, y, width, height } = icicle ? { x: 0, y: 0, width: wide, height: high } : stage.getBBox();
  const k = icicle ? 1 : clamp(Math.min(wide / (width + 2 * EDGE), high / (height + 2 * EDGE)), 0.8, 1.6);
  const size = { width: Math.max(wide, (width + 2 * EDGE) * k), height: Math.max(high, (height + 2 * EDGE) * k) };
  const copy = plainCopy(stage, (element) => element.classList.contains("ds-curtain"));
  if (root) root.setAttribute("transform", pinned);
  if (!icicle) {
    const left = (size.width - width * k) / 2 - x * k, top = (size.height - height * k) / 2 - y * k;
    place(copy, { transform: `translate(${left} ${top}) scale(${k})` });
  }
  const told = [`${lane ? `${said(lane, ".ds-lane-name")}: ` : ""}${svg.getAttribute("aria-label")}`,
    icicle ? said(svg.parentNode, ".ds-icicle-note") : ""];
  return { ...size, parts: [copy],
    keys: keysOf(svg.closest(".ds"), ":is(:scope > .ds-legend, .ds-tree-box) .ds-legend-chip"), told };
}

const LANE = 100, LEFT = 12, AXIS = 34;

/** Every lane: its name and numbers, its bars on the common clock, the end of its text. */
function race(root) {
  const lanes = [...root.querySelectorAll("[data-lane]")], width = Math.max(root.clientWidth, 640);
  const wide = width - 2 * LEFT;
  const ink = (element) => getComputedStyle(element).color;
  const clock = (element) => element.classList.contains("ds-race-now"), parts = [];
  lanes.forEach((lane, i) => {
    const top = i * LANE + 8, bars = lane.querySelector(".ds-race-bars");
    const at = LEFT + (wide * bars.querySelector(".ds-race-now").x1.baseVal.value) / bars.viewBox.baseVal.width;
    const soft = ink(lane.querySelector(".ds-lane-rule"));
    const written = [...lane.querySelectorAll(".text [data-index]")].map((one) => one.textContent).join("");
    parts.push(slideText(LEFT, top + 14, said(lane, ".ds-lane-name"), 15, ink(lane), { "font-weight": 650 }),
      slideText(width - LEFT, top + 14, said(lane, ".ds-lane-numbers"), 13, ink(lane), { "text-anchor": "end" }),
      svgEl("rect", { x: LEFT, y: top + 22, width: wide, height: 40, rx: 8, fill: getComputedStyle(bars)
        .backgroundColor }), place(plainCopy(bars, clock), { x: LEFT, y: top + 22, width: wide, height: 40 }),
      svgEl("line", { x1: at, x2: at, y1: top + 22, y2: top + 62, stroke: ink(lane), "stroke-width": 2 }),
      slideText(LEFT, top + 80, ending(written, wide), 13, soft, { "font-family": MONO }));
  });
  const height = lanes.length * LANE + AXIS, soft = ink(root.querySelector(".ds-lane-rule"));
  const span = lanes[0].querySelector(".ds-race-bars").viewBox.baseVal.width;
  for (let i = 0; i <= 4; i++)
    parts.push(slideText(LEFT + (i * wide) / 4, height - 20, duration((i * span) / 4), 12, soft,
      { "text-anchor": i === 0 ? "start" : i === 4 ? "end" : "middle" }));
  parts.push(slideText(width / 2, height - 4, "measured compute time", 12, soft, { "text-anchor": "middle" }));
  return { width, height, parts, keys: keysOf(root, ":scope > .ds-legend .ds-legend-chip"),
    told: [said(root, ".ds-where"), said(root, ".ds-winner"), said(root, ".ds-same")] };
}

/** As much of the end of a text as fits on one line. */
function ending(text, wide) {
  const points = Array.from(text.replace(/\s+/g, " ").trim());
  const fits = (from) => textWidth(points.slice(from).join(""), FONT) <= wide - 24;
  let from = Math.max(0, points.length - Math.floor(wide / 4));
  while (from < points.length && !fits(from)) from += Math.max(1, Math.floor((points.length - from) / 40));
  return (from ? "…" : "") + points.slice(from).join("");
}

/**
 * A chart with its key.
 * @type {(svg: SVGSVGElement) => ReturnType<Picture["draw"]>}
 */
export function chartPicture(svg) {
  const { width: wide, height: high } = svg.viewBox.baseVal, k = Math.max(1, svg.getBoundingClientRect().width / wide);
  const holder = svg.parentNode;
  return { width: wide * k, height: high * k, parts: [place(plainCopy(svg), { width: wide * k, height: high * k })],
    keys: keysOf(holder, ".ln-key span"), told: [] };
}

const hover = (element) => element.classList.contains("hoverlayer");

/** A plotly figure: layers of equal size, with the words in the ink of the page. */
function figure(plot, ink) {
  const layers = [...plot.querySelectorAll(".main-svg")], { clientWidth: width, clientHeight: height } = plot;
  const copies = layers.map((one) => plainCopy(one, hover));
  for (const copy of copies) for (const words of copy.querySelectorAll("text, tspan"))
    setAttributes(words, { fill: words.localName === "text" ? ink : null, "fill-opacity": null });
  return { width, height, parts: copies, keys: [], told: [] };
}

const numbered = (key, i) => (i ? `${key}-${i + 1}` : key);
const nameOf = (svg) => {
  const lane = svg.closest("[data-lane], [data-run]"), icicle = svg.children[0].getAttribute("display") === "none";
  return (icicle ? "Icicle" : "Draft tree") + (lane ? `: ${said(lane, ".ds-lane-name")}` : "");
};

/**
 * All visible pictures inside an element, in the order in which they are offered.
 * @type {(element: Element) => Picture[]}
 */
export const picturesIn = (element) => [
  ...all(element, ".ds-compare").filter((one) => one.querySelector("[data-lane]"))
    .map((one, i) => ({ key: numbered("race", i), name: "The race", root: one, draw: () => race(one) })),
  ...all(element, "svg.ds-canvas")
    .map((one, i) =>
      ({ key: numbered("tree", i), name: nameOf(one), root: one.closest(".ds"), draw: () => tree(one) })),
  ...all(element, ".ln-chart")
    .map((one, i) =>
      ({ key: numbered("chart", i), name: "The chart", root: one.closest(".ds"), draw: () => chartPicture(one) })),
  ...all(element, ".js-plotly-plot")
    .map((one, i) =>
      ({ key: numbered("figure", i), name: said(one, ".gtitle") || "Figure", root: null,
        draw: (ink) => figure(one, ink) })),
];

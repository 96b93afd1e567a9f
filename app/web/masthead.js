// The head and foot of the page.
import { daylight } from "./daylight.js";
import { tourStart } from "./tour.js";
import { el, find, svgEl } from "../../viz/web/base.js";

/** A small draft tree: one path kept, two branches refused. */
function mark() {
  const line = (d, kept) => svgEl("path",
    { d, fill: "none", stroke: kept ? "var(--slider-color)" : "var(--input-border-color)",
      "stroke-width": kept ? 3 : 2, "stroke-dasharray": kept ? null : "3 3", "stroke-linecap": "round" });
  const dot = (cx, cy, kept) => svgEl("circle",
    { cx, cy, r: kept ? 4.5 : 3.5, fill: kept ? "var(--slider-color)" : "var(--body-background-fill)",
      stroke: kept ? "none" : "var(--input-border-color)", "stroke-width": 2 });
  return svgEl("svg", { viewBox: "0 0 54 40", "aria-hidden": "true" },
    line("M6 20 C14 20 14 32 22 32"), line("M22 11 C32 11 32 3 42 3"), line("M6 20 C14 20 14 11 22 11", true),
    line("M22 11 C34 11 34 19 47 19", true),
    dot(22, 33), dot(43, 4), dot(6, 20, true), dot(22, 11, true), dot(48, 19, true));
}

/** For the keyboard: past the head of the page, to the prompt, beside which Run stands. */
const skip = () => el("a", { class: "pg-skip", href: "#prompt", text: "Skip to the prompt and Run", onclick(event) {
  event.preventDefault();
  find("#rooms [role=tab][data-tab-id='watch']").click();
  find("#prompt textarea").focus();
} });

/**
 * props: name, line, and the words of the tour, null for none.
 * @type {(element: Element, props: any) => void}
 */
export function masthead(element, props) {
  element.append(el("header", { class: "pg-masthead" }, props.tour && skip(), mark(),
    el("p", { class: "pg-name", text: props.name }), el("h1", { text: props.line }),
    props.tour && tourStart(props.tour), props.tour && daylight()));
}

/** @type {(element: Element, line: string) => void} */
export const foot = (element, line) => element.append(el("p", { class: "pg-foot-line", text: line }));

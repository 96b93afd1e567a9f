// The list of limits that the server enforces.
import { el } from "../../viz/web/base.js";

/**
 * limits: [[thing, how much], …]
 * @type {(element: Element, limits: [string, string][]) => void}
 */
export function allowed(element, limits) {
  const rows = limits.map(([thing, amount]) => el("div", {}, el("dt", { text: thing }), el("dd", { text: amount })));
  element.append(el("details", { class: "pg-allowed" }, el("summary", { text: "What this page allows" }),
    el("dl", {}, ...rows)));
}

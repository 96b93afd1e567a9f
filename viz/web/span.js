// A run's steps on an axis of text positions. Two runs of one prompt share this axis.
import { clamp, setAttributes, svgEl } from "./base.js";
import { finalMarks } from "./trace.js";

const HIGH = 10;

/**
 * hooks: onToken(index). Replaces makeTimeline in a lane.
 * @param {HTMLElement} box
 * @param {{ onToken(index: number): void }} hooks
 */
export function spanLine(box, hooks) {
  const bars = svgEl("g", {}), now = svgEl("line", { class: "ds-race-now", y1: 0, y2: HIGH, x1: 0, x2: 0 });
  const parts = svgEl("line", { class: "ds-parts", y1: 0, y2: HIGH, visibility: "hidden" });
  const svg = svgEl("svg",
    { class: "ds-span-bars", preserveAspectRatio: "none", "aria-hidden": "true", viewBox: `0 0 1 ${HIGH}` }, bars,
    parts, now);
  box.append(svg);
  let count = 0, span = 1, current = null, dragging = false;
  const seek = (event) => {
    const at = svg.getBoundingClientRect();
    hooks.onToken(Math.floor(clamp((event.clientX - at.left) / at.width, 0, 1) * span));
  };
  svg.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    dragging = true;
    svg.setPointerCapture(event.pointerId);
    seek(event);
  });
  svg.addEventListener("pointermove", (event) => { if (dragging) seek(event); });
  svg.addEventListener("pointerup", () => { dragging = false; });
  svg.addEventListener("pointercancel", () => { dragging = false; });
  return {
    reset() { bars.replaceChildren(); count = 0; current = null; setAttributes(parts, { visibility: "hidden" }); },
    grow(model) {
      for (; count < model.steps.length; count++) {
        const { firstIndex: x, tokens, final } = model.steps[count].view, kept = tokens - (final ? 1 : 0);
        const cell = (at, width, marks) => svgEl("rect", { x: at, width, y: 1, height: HIGH - 2, ...marks });
        bars.append(svgEl("g", { "data-step": count, "data-tokens": tokens },
          kept > 0 && cell(x + 0.12, kept - (final ? 0.12 : 0.24), { "data-status": "accepted" }),
          final && cell(x + kept + (kept ? 0 : 0.12), kept ? 0.88 : 0.76, finalMarks(final))));
      }
    },
    draw(model, index) {
      if (current) current.removeAttribute("data-now");
      current = bars.children[index] || null;
      if (current) current.setAttribute("data-now", "");
    },
    hover() {},
    /** tokens: length of the axis, shared by both runs. */
    scale(tokens) { span = Math.max(1, tokens); svg.setAttribute("viewBox", `0 0 ${span} ${HIGH}`); },
    at(index) { setAttributes(now, { x1: index + 0.5, x2: index + 0.5 }); },
    /** Where the texts part; null takes the mark away. */
    part(index) {
      setAttributes(parts, { x1: index || 0, x2: index || 0, visibility: index === null ? "hidden" : "visible" });
    },
  };
}

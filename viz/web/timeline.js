// One bar per step: tokens gained above, milliseconds spent below. Drag or use the arrow keys to scrub.
import { clamp, setAttributes, svgEl, whileHeld } from "./base.js";
import { finalMarks } from "./trace.js";
import { duration, plural } from "./words.js";

const TOKENS = 62, TIME = 96, PARTS = ["draft", "verify", "judge", "commit"];

function unitPath(x, from, to) {
  let path = "";
  for (let k = from; k < to; k++) path += `M${x + 0.12} ${k + 0.08}h0.76v0.86h-0.76z`;
  return path;
}

/**
 * hooks: onSeek(step), onHover(step | null).
 * @param {HTMLElement} box
 * @param {{ onSeek(step: number): void, onHover(step: number | null): void }} hooks
 */
export function makeTimeline(box, hooks) {
  const cursor = svgEl("rect", { class: "ds-cursor", y: 0, height: 100, width: 1 });
  const over = svgEl("rect", { class: "ds-cursor-hover", y: 0, height: 100, width: 1, visibility: "hidden" });
  const bars = svgEl("g", {});
  const svg = svgEl("svg", { class: "ds-timeline-bars", preserveAspectRatio: "none", "aria-hidden": "true" }, cursor,
    bars, over,
    svgEl("line", { class: "ds-rule", x1: 0, x2: 100000, y1: TOKENS + 2, y2: TOKENS + 2 }));
  box.append(svg);
  setAttributes(box, { role: "slider", tabindex: 0, "aria-label": "Step", "aria-valuemin": 0, "aria-valuemax": 0,
    "aria-valuenow": 0 });
  let count = 0, most = 4, longest = 0.001, span = 0;

  const stepAt = (event) => {
    const at = svg.getBoundingClientRect();
    return clamp(Math.floor(((event.clientX - at.left) / at.width) * span), 0, count - 1);
  };
  whileHeld(svg, (event) => { if (count) hooks.onSeek(stepAt(event)); });
  svg.addEventListener("pointermove", (event) => { if (count && !event.buttons) hooks.onHover(stepAt(event)); });
  svg.addEventListener("pointerleave", () => hooks.onHover(null));
  box.addEventListener("keydown", (event) => {
    const now = Number(box.getAttribute("aria-valuenow")) - 1;
    const to = { Home: 0, End: count - 1, PageUp: now + 10, PageDown: now - 10, ArrowUp: now + 1,
      ArrowDown: now - 1 }[event.key];
    if (to === undefined || !count) return;
    hooks.onSeek(clamp(to, 0, count - 1));
    event.preventDefault(); event.stopPropagation();
  });

  function scale() {
    const wide = Math.max(24, count);
    if (wide !== span) { span = wide; svg.setAttribute("viewBox", `0 0 ${span} 100`); }
    svg.style.setProperty("--ds-token-unit", (-TOKENS / most).toFixed(4));
    svg.style.setProperty("--ds-time-unit", ((TIME - TOKENS - 4) / longest).toFixed(6));
  }

  return {
    reset() { bars.replaceChildren(); count = 0; most = 4; longest = 0.001; span = 0; scale(); },
    /** Draw the steps that have arrived since the last call. */
    grow(model) {
      for (; count < model.steps.length; count++) {
        const { view, milliseconds } = model.steps[count], x = count, kept = view.tokens - (view.final ? 1 : 0);
        const gained = svgEl("g", { class: "ds-gained" }, kept > 0
          && svgEl("path", { d: unitPath(x, 0, kept), "data-status": "accepted" }),
          view.final && svgEl("path", { d: unitPath(x, kept, kept + 1), ...finalMarks(view.final) }));
        const spent = svgEl("g", { class: "ds-spent" });
        let at = 0;
        for (const part of PARTS) {
          const ms = (milliseconds && milliseconds[part]) || 0;
          if (ms > 0) spent.append(svgEl("rect", { x: x + 0.12, width: 0.76, y: at, height: ms, "data-part": part }));
          at += ms;
        }
        bars.append(svgEl("g", { "data-step": count, "data-tokens": view.tokens },
          svgEl("rect", { class: "ds-hit", x, y: 0, width: 1, height: 100 }), gained, spent));
        most = Math.max(most, view.tokens);
        longest = Math.max(longest, view.work);
      }
      scale();
      setAttributes(box, { "aria-valuemax": count, "aria-valuemin": count ? 1 : 0 });
    },
    draw(model, now) {
      cursor.setAttribute("x", now);
      cursor.setAttribute("visibility", now < 0 ? "hidden" : "visible");
      const step = model.steps[now];
      setAttributes(box, { "aria-valuenow": now + 1, "aria-valuetext": step
        ? `Step ${now + 1} of ${count}, ${plural(step.view.tokens, "token")}, ${duration(step.view.total)}`
        : "no step yet" });
    },
    hover(step) {
      setAttributes(over, { x: step === null ? 0 : step, visibility: step === null ? "hidden" : "visible" });
    },
  };
}

// The race: the steps of every lane on one axis of measured compute time, and a clock that moves along it.
/** @import { Model } from "./view-types.d.ts" */
import { clamp, setAttributes, svgEl, whileHeld } from "./base.js";
import { finalMarks } from "./trace.js";

/**
 * A lane's bars. A bar's place and width show when the step ran and for how long, its height the tokens
 * gained; the flat bar before them is the reading of the prompt.
 * @param {HTMLElement} box
 * @param {any} hooks
 */
export function raceLine(box, hooks) {
  const HIGH = 40;
  const bars = svgEl("g", {}), now = svgEl("line", { class: "ds-race-now", y1: 0, y2: HIGH, x1: 0, x2: 0 });
  const svg = svgEl("svg",
    { class: "ds-race-bars", preserveAspectRatio: "none", "aria-hidden": "true", viewBox: `0 0 1 ${HIGH}` }, bars, now);
  box.append(svg);
  let count = 0, read = 0, span = 1, most = 1, current = null;
  const timeAt = (event) => {
    const at = svg.getBoundingClientRect();
    return clamp((event.clientX - at.left) / at.width, 0, 1) * span;
  };
  whileHeld(svg, (event) => hooks.onTime(timeAt(event)));
  return {
    reset() { bars.replaceChildren(); count = read = 0; current = null; },
    grow(model) {
      if (read !== model.prefill) {                // the reading of the prompt comes first, and moves the steps
        bars.replaceChildren();
        count = 0;
        read = model.prefill;
        bars.append(svgEl("rect", { class: "ds-race-prefill", x: 0, width: read, y: HIGH - 6, height: 6 }));
      }
      for (; count < model.steps.length; count++) {
        const { view } = model.steps[count], kept = view.tokens - (view.final ? 1 : 0);
        const x = view.start, width = Math.max(view.total * 0.9, 0.001);
        const unit = (y, h, marks) => svgEl("rect", { x, width, y, height: h, ...marks });
        bars.append(svgEl("g", { "data-step": count, "data-tokens": view.tokens },
          svgEl("rect", { class: "ds-hit", x, width, y: 0, height: HIGH }),
          svgEl("g", { class: "ds-race-gain" }, kept > 0 && unit(0, kept, { "data-status": "accepted" }),
            view.final && unit(kept, 1, finalMarks(view.final)))));
      }
    },
    draw(model, index) {
      if (current) current.removeAttribute("data-now");
      current = bars.querySelector(`[data-step='${index}']`);
      if (current) current.setAttribute("data-now", "");
    },
    hover() {},
    /** ms: length of the axis; tokens: height of the axis; both shared by all lanes. */
    scale(ms, tokens) {
      if (ms === span && tokens === most) return;
      span = ms; most = tokens;
      svg.setAttribute("viewBox", `0 0 ${span} ${HIGH}`);
      svg.style.setProperty("--ds-race-unit", (-HIGH / most).toFixed(4));
    },
    clock(ms) { setAttributes(now, { x1: ms, x2: ms }); },
  };
}

/**
 * How many steps of a run are finished at this time on the axis.
 * @type {(model: Model, ms: number) => number}
 */
export function stepsBy(model, ms) {
  let low = 0, high = model.steps.length;
  while (low < high) {
    const middle = (low + high) >> 1, { start, total } = model.steps[middle].view;
    if (start + total <= ms + 1e-9) low = middle + 1; else high = middle;
  }
  return low;
}

/** @type {Record<string, [string, number]>} */
export const RACE_PACES = { slower100: ["100 times slower", 0.01], slower30: ["30 times slower", 1 / 30],
  slower10: ["10 times slower", 0.1], slower4: ["4 times slower", 0.25], real: ["as fast as it ran", 1] };

/**
 * The clock. hooks.tick(ms) draws; hooks.end() gives the length.
 * @param {any} hooks
 */
export function raceClock(hooks) {
  let frame = 0, last = 0;
  const clock = {
    ms: 0, playing: false, pace: null,
    play() {
      if (clock.ms >= hooks.end() - 1e-6) clock.ms = 0;
      clock.playing = true; last = 0;
      if (!frame) frame = requestAnimationFrame(tick);
      hooks.tick();
    },
    pause() { clock.playing = false; hooks.tick(); },
    toggle() { if (clock.playing) clock.pause(); else clock.play(); },
    seek(ms) { clock.ms = clamp(ms, 0, hooks.end()); hooks.tick(); },
    get factor() { return RACE_PACES[clock.named][1]; },
    /** The reader's pace, otherwise one at which the race lasts ten to forty seconds. */
    get named() {
      if (clock.pace) return clock.pace;
      const end = hooks.end();
      return end > 15000 ? "real" : end > 4000 ? "slower4" : end > 1200 ? "slower10" : end > 400 ? "slower30"
        : "slower100";
    },
    stop() { cancelAnimationFrame(frame); frame = 0; clock.playing = false; },
  };
  function tick(now) {
    frame = 0;
    if (!clock.playing) return;
    if (last) clock.ms += (now - last) * clock.factor;
    last = now;
    const end = hooks.end();
    if (clock.ms >= end) { clock.ms = end; clock.playing = false; }
    if (clock.playing) frame = requestAnimationFrame(tick);
    hooks.tick();
  }
  return clock;
}

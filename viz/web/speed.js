// Is it faster? The run's speed against plain decoding as a bar, measured; the same on a GPU, projected; and why.
/** @import { Checked, Glossary, Speed } from "./view-types.d.ts" */
import { el, setAttributes, writeText } from "./base.js";
import { shorten } from "./words.js";

/** From this multiple of plain decoding's speed on, a run is called faster; less is within the noise. */
export const FASTER = 1.05;
const times = (ratio, digits = 2) => `${ratio.toFixed(digits)}×`;

const APART = 0.07;   // share by which a step's costs may contradict the measured ratio without a word

/** Whether the measured ratios stray so far that figures beside each other need not agree. */
const strays = (low, high) => high > 1.5 * low;

/**
 * The answer in words. ratio: plain decoding's time, divided by that of the run; low, high: its
 * range.
 * @type {(speed: { ratio: number, low: number, high: number }) => string}
 */
function answer({ ratio, low, high }) {
  if (low < 0.95 && high > 1.05) return `Unclear, the machine is busy: ${times(ratio)}`;
  const told = `${strays(low, high) ? "about " : ""}${times(ratio)}`;
  if (ratio >= FASTER) return `Yes: ${told} as fast`;
  return ratio > 0.95 ? "No: about as fast" : `No: ${told} the speed`;
}

const rounded = (milliseconds) => milliseconds.toFixed(milliseconds < 100 ? 1 : 0);

/**
 * The costs of a step, and what plain decoding takes for as many tokens. gain: tokens a step. The prompt is not in
 * these costs, so they may give another ratio than the answer does.
 * @type {(speed: Speed, gain: number) => string}
 */
function reason({ verify, one, draft, machine, low, high, ratio }, gain) {
  const rough = strays(low, high) || Math.abs((one * gain) / (draft + verify) / ratio - 1) > APART;
  return `Why${rough ? ", roughly" : ""}: ${gain.toFixed(1)} tokens take ${rounded(draft)} ms guessing + ` +
    `${rounded(verify)} checking, or ${rounded(one * gain)} ms one by one` +
    `${machine ? ` (${shorten(machine, 24)})` : ""}.`;
}

/** A bar from 0 on, with a line where plain decoding is, and the range of what was measured. */
function bar() {
  const fill = el("span", { class: "ds-speed-fill" }), range = el("span", { class: "ds-speed-range" });
  const element = el("span", { class: "ds-speed-bar", "aria-hidden": "true" }, fill, range,
    el("span", { class: "ds-speed-plain" }));
  const percent = (part) => `${(100 * part).toFixed(1)}%`;
  return {
    element,
    /** most: the end of the scale. */
    draw(most, ratio, low = ratio, high = ratio) {
      element.style.setProperty("--plain", percent(1 / most));
      fill.style.width = percent(ratio / most);
      range.style.left = percent(low / most);
      range.style.width = percent((high - low) / most);
      setAttributes(element, { "data-loses": ratio <= 0.95 });
    },
  };
}

/**
 * draw(checked, measuring, gain): what is known, whether more is to come, and the run's tokens a step.
 * @type {(glossary: Glossary) => { element: HTMLElement, why: HTMLElement,
 *   draw(checked: Checked | null, measuring: boolean, gain: number): void }}
 */
export function speedLine(glossary) {
  const here = bar(), there = bar(), said = el("strong", {}), range = el("span", { class: "ds-speed-said" });
  const projection = el("span", { class: "ds-speed-said" }), why = el("p", { class: "ds-speed-why" });
  const gpu = [glossary.term("on a GPU", "On a GPU"), there.element, projection];
  const element = el("div", { class: "ds-speed", role: "status" }, glossary.term("faster", "Is it faster?"),
    here.element, el("span", {}, said, range), ...gpu);
  return {
    element, why,
    draw(checked, measuring, gain) {
      const speed = checked && checked.speed, projected = speed && speed.gpu;
      setAttributes(element, { "data-known": Boolean(speed), hidden: !speed && !measuring });
      for (const part of gpu) setAttributes(part, { hidden: !projected });
      writeText(said, speed ? answer(speed) : "measuring…");
      writeText(range, speed ? ` (${speed.low.toFixed(2)} to ${speed.high.toFixed(2)}, prompt included)` : "");
      writeText(why, speed ? reason(speed, gain) : "");
      if (!speed) return;
      const most = Math.max(2, 1.1 * speed.ratio, 1.1 * (projected ? projected.ratio : 0));
      here.draw(most, speed.ratio, Math.max(0, speed.low), Math.min(most, speed.high));
      if (!projected) return;
      there.draw(most, projected.ratio);
      writeText(projection, `${times(projected.ratio, 1)}, projected for ${projected.machine}`);
    },
  };
}

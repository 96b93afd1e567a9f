// The exhibit "gauge": one number on its scale, with an optional mark to compare it with.
/** @import { Exhibit } from "./types.d.ts" */
/** @import { Drawing } from "./view-types.d.ts" */
import { clamp, el } from "./base.js";
import { ensure, isNumber, numberOrNull, numberText, shortText } from "./cells.js";

/** @type {(exhibit: Exhibit) => Drawing} */
export function gaugeExhibit(exhibit) {
  const value = numberOrNull(exhibit.value), mark = numberOrNull(exhibit.mark), { minimum = 0, maximum = 1 } = exhibit;
  ensure(isNumber(minimum) && isNumber(maximum) && maximum > minimum);
  const unit = shortText(exhibit.unit, 20);
  const said = (number) => (number === null ? "–" : `${numberText(number)}${unit ? ` ${unit}` : ""}`);
  const at = (number) => `${(clamp((number - minimum) / (maximum - minimum), 0, 1) * 100).toFixed(2)}%`;
  const track = el("div", { class: "ds-gauge-track", "aria-hidden": "true" });
  if (value !== null) {
    const fill = el("span", { class: "ds-gauge-fill" });
    fill.style.width = at(value);
    track.append(fill);
  }
  if (mark !== null) {
    const line = el("span", { class: "ds-gauge-mark" });
    line.style.left = at(mark);
    track.append(line);
  }
  return {
    content: el("div", { class: "ds-gauge" }, el("p", { class: "ds-gauge-value" }, el("strong", { text: said(value) }),
      mark !== null && el("span", { class: "ds-quiet", text: `mark ${said(mark)}` })),
      track, el("p", { class: "ds-gauge-ends ds-quiet" }, el("span", { text: numberText(minimum) }),
        el("span", { text: numberText(maximum) }))),
  };
}

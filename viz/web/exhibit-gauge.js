// The exhibit "gauge": one number on its scale, with an optional mark to compare it with.
(function (D) {
  "use strict";
  D.EXHIBITS.gauge = function (exhibit) {
    const value = D.numberOrNull(exhibit.value), mark = D.numberOrNull(exhibit.mark), { minimum = 0, maximum = 1 } = exhibit;
    D.require(D.isNumber(minimum) && D.isNumber(maximum) && maximum > minimum);
    const unit = D.words(exhibit.unit, 20), said = (number) => (number === null ? "–" : `${D.number(number)}${unit ? ` ${unit}` : ""}`);
    const at = (number) => `${(D.clamp((number - minimum) / (maximum - minimum), 0, 1) * 100).toFixed(2)}%`;
    const track = D.el("div", { class: "ds-gauge-track", "aria-hidden": "true" });
    if (value !== null) { const fill = D.el("span", { class: "ds-gauge-fill" }); fill.style.width = at(value); track.append(fill); }
    if (mark !== null) { const line = D.el("span", { class: "ds-gauge-mark" }); line.style.left = at(mark); track.append(line); }
    return {
      content: D.el("div", { class: "ds-gauge" }, D.el("p", { class: "ds-gauge-value" }, D.el("strong", { text: said(value) }), mark !== null && D.el("span", { class: "ds-quiet", text: `mark ${said(mark)}` })),
        track, D.el("p", { class: "ds-gauge-ends ds-quiet" }, D.el("span", { text: D.number(minimum) }), D.el("span", { text: D.number(maximum) }))),
    };
  };
})(globalThis.Draftscope);

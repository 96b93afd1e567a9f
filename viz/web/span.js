// A run's steps on an axis of text positions. Two runs of one prompt share this axis.
(function (D) {
  "use strict";
  const HIGH = 10;

  /** hooks: onToken(index). Replaces D.timeline in a lane. */
  D.spanLine = function (box, hooks) {
    const bars = D.svg("g", {}), now = D.svg("line", { class: "ds-race-now", y1: 0, y2: HIGH, x1: 0, x2: 0 });
    const parts = D.svg("line", { class: "ds-parts", y1: 0, y2: HIGH, visibility: "hidden" });
    const svg = D.svg("svg", { class: "ds-span-bars", preserveAspectRatio: "none", "aria-hidden": "true", viewBox: `0 0 1 ${HIGH}` }, bars, parts, now);
    box.append(svg);
    let count = 0, span = 1, current = null, dragging = false;
    const seek = (event) => {
      const at = svg.getBoundingClientRect();
      hooks.onToken(Math.floor(D.clamp((event.clientX - at.left) / at.width, 0, 1) * span));
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
      reset() { bars.replaceChildren(); count = 0; current = null; D.set(parts, { visibility: "hidden" }); },
      grow(model) {
        for (; count < model.steps.length; count++) {
          const { firstIndex: x, tokens, final } = model.steps[count].view, kept = tokens - (final ? 1 : 0);
          const cell = (at, width, marks) => D.svg("rect", { x: at, width, y: 1, height: HIGH - 2, ...marks });
          bars.append(D.svg("g", { "data-step": count, "data-tokens": tokens },
            kept > 0 && cell(x + 0.12, kept - (final ? 0.12 : 0.24), { "data-status": "accepted" }), final && cell(x + kept + (kept ? 0 : 0.12), kept ? 0.88 : 0.76, D.finalMarks(final))));
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
      at(index) { D.set(now, { x1: index + 0.5, x2: index + 0.5 }); },
      /** Where the texts part; null takes the mark away. */
      part(index) { D.set(parts, { x1: index || 0, x2: index || 0, visibility: index === null ? "hidden" : "visible" }); },
    };
  };
})(globalThis.Draftscope);

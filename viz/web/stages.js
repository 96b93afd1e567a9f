// A line of text below the bars: what is above and below the axis, and how long each stage of this step took.
(function (D) {
  "use strict";
  const PARTS = ["draft", "verify", "judge", "commit"];

  D.stageKey = function (glossary) {
    const times = new Map(PARTS.map((part) => [part, D.el("span", { class: "ds-part-time" })]));
    return {
      element: D.el("p", { class: "ds-timeline-key" },
        D.el("span", {}, "▲ ", glossary.term("gained", "tokens")), D.el("span", {}, "▼ ", glossary.term("spent", "milliseconds")),
        ...PARTS.map((part) => D.el("span", { "data-part": part }, glossary.term(`${part} time`, part), " ", times.get(part)))),
      draw(step) {
        const ms = (step && step.milliseconds) || {};
        for (const [part, time] of times) D.write(time, part === "draft" && step && !step.view.count && D.isPlain(step.view.run) ? "–" : ms[part] > 0 ? D.ms(ms[part]) : "");
      },
    };
  };
})(globalThis.Draftscope);

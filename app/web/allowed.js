// The list of limits that the server enforces.
(function () {
  "use strict";
  const P = (globalThis.DraftscopePage = globalThis.DraftscopePage || {});

  /** limits: [[thing, how much], …] */
  P.allowed = function (element, limits) {
    const { el } = Draftscope;
    const rows = limits.map(([thing, amount]) => el("div", {}, el("dt", { text: thing }), el("dd", { text: amount })));
    element.append(el("details", { class: "pg-allowed" }, el("summary", { text: "What this page allows" }), el("dl", {}, ...rows)));
  };
})();

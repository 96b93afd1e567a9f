// The table under a race.
(function () {
  "use strict";
  const P = (globalThis.DraftscopePage = globalThis.DraftscopePage || {});

  /** value: JSON {"columns": [[name, explanation]], "rows": [[text]], "says": [text]}; rows start with the lane's name. */
  P.results = function (c) {
    const { el } = Draftscope;
    const box = el("section", { class: "pg-results", "aria-label": "Results" });
    c.element.append(box);
    const show = () => {
      const data = c.props.value ? JSON.parse(c.props.value) : null;
      box.hidden = !data;
      if (!data) return;
      const head = el("tr", {}, ...data.columns.map(([name, why]) => el("th", { scope: "col", title: why, text: name })));
      const body = data.rows.map(([lane, ...cells]) => el("tr", { "data-result": lane },
        el("th", { scope: "row", text: lane }), ...cells.map((cell) => el("td", { text: cell }))));
      box.replaceChildren(
        ...data.says.map((line) => el("p", { class: "pg-verdict", text: line })),
        el("div", { class: "pg-scroll", tabindex: 0, role: "region", "aria-label": "Table of results" },
          el("table", {}, el("thead", {}, head), el("tbody", {}, ...body))));
    };
    c.watch("value", show);
    show();
  };
})();

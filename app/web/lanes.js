// The lanes of a comparison: each a drafter with its own options and rule; two at least, props.most at most.
// The value is JSON: [{"drafter": key, "values": {name: value}, "verifier": key or "" for the automatic one}, …].
(function () {
  "use strict";
  const P = (globalThis.DraftscopePage = globalThis.DraftscopePage || {});
  const LEAST = 2;

  /** One lane's controls. state: its {drafter, values, verifier}. hooks: changed(), removed(). */
  function laneControl(state, { menu, rules }, hooks) {
    const { el } = Draftscope;
    const drafter = el("select", { class: "pg-racer-drafter", onchange: () => { Object.assign(state, { drafter: drafter.value, values: {}, verifier: "" }); options(); hooks.changed(); } },
      ...Object.entries(menu).map(([key, about]) => el("option", { value: key, text: about.label, selected: key === state.drafter })));
    const remove = el("button", { type: "button", class: "pg-tool pg-racer-remove", onclick: hooks.removed, text: "×" });
    const inside = el("div", { role: "group" }), summary = el("summary", {}), more = el("details", { class: "pg-racer-more" }, summary, inside);
    let at = 0;

    /** What can be read while the details are closed: a rule that is not the automatic one. */
    function head() {
      const rule = state.verifier ? `: ${rules[state.drafter][state.verifier]}` : "";
      summary.textContent = `Rule and options${rule}`;
      summary.setAttribute("aria-label", `Rule and options of lane ${at}${rule}`);
    }

    /** Only the rules that go with the drafter, each with the word on whether the pair is exact. */
    function judge() {
      const id = Draftscope.freshId("rule"), labels = rules[state.drafter];
      if (!Object.hasOwn(labels, state.verifier || "")) state.verifier = "";
      const field = el("select", { id, onchange: () => { state.verifier = field.value; head(); hooks.changed(); } },
        ...Object.entries(labels).map(([key, text]) => el("option", { value: key, text, selected: key === (state.verifier || "") })));
      return el("div", { class: "pg-option pg-racer-judge" }, el("label", { for: id, text: "rule" }), field);
    }

    function options() {
      const about = menu[state.drafter];
      inside.replaceChildren(el("p", { class: "pg-summary", text: about.summary }), judge(), ...P.optionControls(about, state.values, hooks.changed));
      head();
    }
    options();
    return {
      state, drafter, remove,
      element: el("li", { class: "pg-racer" }, el("div", { class: "pg-racer-head" }, drafter, remove), more),
      number(n, removable) {
        at = n;
        head();
        drafter.setAttribute("aria-label", `Drafter of lane ${n}`);
        Draftscope.set(remove, { "aria-label": `Remove lane ${n}`, title: `Remove lane ${n}` });
        remove.disabled = !removable;
        inside.setAttribute("aria-label", `Lane ${n}`);
      },
    };
  }

  P.lanes = function (c) {
    const { el } = Draftscope;
    const list = el("ol", { class: "pg-racers" });
    const more = el("button", { type: "button", class: "pg-tool", id: "add-lane", text: "Add a lane", onclick: add });
    const count = el("span", { class: "pg-help" });
    let written = null, lanes = [];

    function tell() {
      written = JSON.stringify(lanes.map((lane) => lane.state));
      c.props.value = written;
      c.trigger("edited");
    }

    function open(state) {
      const lane = laneControl(state, c.props, { changed: tell, removed: () => drop(lane) });
      lanes.push(lane);
      list.append(lane.element);
      return lane;
    }

    function number() {
      lanes.forEach((lane, i) => lane.number(i + 1, lanes.length > LEAST));
      more.disabled = lanes.length >= c.props.most;
      count.textContent = `${lanes.length} of at most ${c.props.most}`;
    }

    /** A drafter that does not race yet, if there is one. */
    function add() {
      const racing = new Set(lanes.map((lane) => lane.state.drafter)), all = Object.keys(c.props.menu);
      const lane = open({ drafter: all.find((key) => !racing.has(key)) || all[0], values: {}, verifier: "" });
      number(); tell();
      lane.drafter.focus();
    }

    function drop(lane) {
      const at = lanes.indexOf(lane);
      lanes.splice(at, 1);
      lane.element.remove();
      number(); tell();
      lanes[Math.min(at, lanes.length - 1)].drafter.focus();
    }

    function build() {
      if (c.props.value === written) return;
      written = c.props.value;
      lanes = [];
      list.replaceChildren();
      JSON.parse(written).forEach(open);
      number();
    }

    Draftscope.set(c.element, { role: "group", "aria-label": "Lanes" });
    c.element.append(el("p", { class: "pg-racers-name", text: "Lanes", "aria-hidden": "true" }), list, el("div", { class: "pg-racers-foot" }, more, count));
    c.watch("value", build);
    build();
  };
})();

// Controls made from a drafter's own option declarations.
// The value is JSON: {"drafter": key, "values": {name: value}}.
(function () {
  "use strict";
  const P = (globalThis.DraftscopePage = globalThis.DraftscopePage || {});

  P.options = function (c) {
    const { el } = Draftscope;
    const menu = c.props.menu;
    let written = null;

    function build() {
      if (c.props.value === written) return;
      written = c.props.value;
      const state = JSON.parse(c.props.value);
      const about = menu[state.drafter];
      const values = {};
      for (const option of about.options) {
        const given = state.values[option.name];
        values[option.name] = given === undefined ? option.default : given;
      }
      const changed = (name, value) => {
        values[name] = value;
        written = JSON.stringify({ drafter: state.drafter, values });
        c.props.value = written;
      };
      c.element.replaceChildren(
        el("p", { class: "pg-summary", text: about.summary }),
        ...about.options.map((option) => control(option, values[option.name], changed)),
      );
    }

    function control(option, value, changed) {
      const id = Draftscope.freshId("option");
      const name = option.name.replaceAll("_", " ");
      const help = el("span", { class: "pg-help", id: id + "-help", text: option.help });
      const common = { id, "aria-describedby": id + "-help", "data-option": option.name };
      let field;
      if (option.type === "bool") {
        field = el("input", { ...common, type: "checkbox", checked: Boolean(value),
          onchange: () => changed(option.name, field.checked) });
      } else if (option.type === "choice") {
        field = el("select", { ...common, onchange: () => changed(option.name, field.value) },
          ...option.choices.map((choice) => el("option", { value: choice, text: choice, selected: choice === value })));
      } else {
        field = number(option, value, common, changed);
      }
      return el("div", { class: "pg-option" }, el("label", { for: id, text: name }), field, help);
    }

    function number(option, value, common, changed) {
      const whole = option.type === "int";
      const bounded = option.minimum !== null && option.maximum !== null;
      const field = el("input", { ...common, type: "number", value, min: option.minimum, max: option.maximum,
        step: whole ? 1 : "any", inputmode: whole ? "numeric" : "decimal" });
      field.addEventListener("change", () => {
        let next = Number(field.value);
        if (field.value === "" || !Number.isFinite(next)) next = option.default;
        if (whole) next = Math.round(next);
        if (bounded) next = Draftscope.clamp(next, option.minimum, option.maximum);
        field.value = next;
        changed(option.name, next);
      });
      return field;
    }

    c.watch("value", build);
    build();
  };
})();

// Controls made from a drafter's own option declarations.
// The value is JSON: {"drafter": key, "values": {name: value}}.
(function () {
  "use strict";
  const P = (globalThis.DraftscopePage = globalThis.DraftscopePage || {});

  function control(option, value, changed, mark) {
    const id = Draftscope.freshId("option");
    const name = option.name.replaceAll("_", " ");
    const help = Draftscope.el("span", { class: "pg-help", id: id + "-help", text: option.help });
    const common = { id, "aria-describedby": id + "-help", [mark]: option.name };
    let field;
    if (option.type === "bool") {
      field = Draftscope.el("input", { ...common, type: "checkbox", checked: Boolean(value),
        onchange: () => changed(option.name, field.checked) });
    } else if (option.type === "choice") {
      field = Draftscope.el("select", { ...common, onchange: () => changed(option.name, field.value) },
        ...option.choices.map((choice) => Draftscope.el("option", { value: choice, text: choice, selected: choice === value })));
    } else {
      field = number(option, value, common, changed);
    }
    return Draftscope.el("div", { class: "pg-option" }, Draftscope.el("label", { for: id, text: name }), field, help);
  }

  function number(option, value, common, changed) {
    const whole = option.type === "int";
    const bounded = option.minimum !== null && option.maximum !== null;
    const written = (amount) => (option.auto && !amount ? "" : amount);   // 0 is what pays here: no number of the visitor's
    const field = Draftscope.el("input", { ...common, type: "number", value: written(value), min: option.minimum, max: option.maximum,
      step: whole ? 1 : "any", inputmode: whole ? "numeric" : "decimal", placeholder: option.auto ? "auto" : null });
    field.addEventListener("change", () => {
      let next = Number(field.value);
      if (field.value === "" || !Number.isFinite(next)) next = option.default;
      if (whole) next = Math.round(next);
      if (bounded) next = Draftscope.clamp(next, option.minimum, option.maximum);
      field.value = written(next);
      changed(option.name, next);
    });
    return field;
  }

  /**
   * A control for each of a drafter's options. values: {name: value}; made to hold each option and no other, and kept up
   * to date, after which `changed` is told. mark: the attribute that names a control's option.
   */
  P.optionControls = function (about, values, changed = () => {}, mark = "data-option") {
    const set = (name, value) => { values[name] = value; changed(); };
    const names = about.options.map((option) => option.name);
    for (const name of Object.keys(values)) if (!names.includes(name)) delete values[name];
    for (const option of about.options) if (values[option.name] === undefined) values[option.name] = option.default;
    return about.options.map((option) => control(option, values[option.name], set, mark));
  };

  P.options = function (c) {
    const menu = c.props.menu;
    let written = null;

    function build() {
      if (c.props.value === written) return;
      written = c.props.value;
      const { drafter, values } = JSON.parse(c.props.value);
      const changed = () => {
        written = JSON.stringify({ drafter, values });
        c.props.value = written;
      };
      c.element.replaceChildren(
        Draftscope.el("p", { class: "pg-summary", text: menu[drafter].summary }),
        ...P.optionControls(menu[drafter], values, changed),
      );
    }

    c.watch("value", build);
    build();
  };
})();

// "What if …": the finished run again with another drafter, rule or temperature, laid beside it.
(function () {
  "use strict";
  const P = (globalThis.DraftscopePage = globalThis.DraftscopePage || {});
  const WATCH = "watch", WHAT_IF = "whatif";
  const ROOM = 64;   // tokens beyond the end of a text, so that its last draft is not cut shorter than it was

  P.mounts[WHAT_IF] = (element) => Draftscope.mountBeside(element);

  /** c.props: menu {drafter: {label, summary, verifier, options}}, rules {drafter: {key: label}}. */
  P.whatIf = function (c) {
    const { el } = Draftscope, { menu, rules } = c.props;
    let trace = null, line = "", newTokens = 0, values = {};

    const drafter = el("select", { id: "whatif-drafter", onchange: () => { values = {}; chosen(); } },
      ...Object.entries(menu).map(([key, { label }]) => el("option", { value: key, text: label })));
    const rule = el("select", { id: "whatif-rule" });
    const temperature = el("input", { id: "whatif-temperature", type: "number", min: 0, max: 2, step: 0.05, inputmode: "decimal" });
    const options = el("div", { class: "pg-what-options" });
    const run = el("button", { type: "button", id: "whatif-run", class: "pg-tool pg-go", text: "Run it beside", onclick: ask });
    const stop = el("button", { type: "button", id: "whatif-stop", class: "pg-tool", text: "Stop", disabled: true });
    const field = (label, control) => el("div", { class: "pg-what-field" }, el("label", { for: control.id, text: label }), control);
    const form = el("fieldset", { class: "pg-what-form" }, el("legend", { class: "pg-hidden", text: "What shall be different" }),
      el("div", { class: "pg-what-fields" }, field("Drafter", drafter), field("Rule", rule), field("Temperature", temperature)),
      options, el("div", { class: "pg-what-go" }, run, stop));
    const wait = el("p", { class: "pg-help", text: "This waits until the run has come to its end." });
    c.element.append(el("details", { class: "pg-what" },
      el("summary", {}, el("strong", { text: "What if …" }), " the same prompt and seed, with another drafter, rule or temperature?"), wait, form));

    /** The drafter's rules and options, the options at `values` or their defaults. */
    function chosen() {
      const key = drafter.value, kept = rule.value;
      rule.replaceChildren(...Object.entries(rules[key]).map(([name, label]) => el("option", { value: name, text: label })));
      rule.value = Object.hasOwn(rules[key], kept) ? kept : "";
      options.replaceChildren(...P.optionControls(menu[key], values, undefined, "data-what-option"));
    }

    /** Take over the settings of the run on the screen, once it is finished. */
    function look() {
      const now = P.stateOf(WATCH) === "running" ? "" : P.trace(WATCH);
      if (now === trace) return;
      trace = now;
      const ready = Boolean(trace) && P.finished(trace);
      form.disabled = !ready;
      wait.hidden = ready;
      clear();
      if (!ready) return;
      line = trace.slice(0, trace.indexOf("\n"));
      const first = JSON.parse(line), summary = JSON.parse(trace.trimEnd().split("\n").pop());
      newTokens = summary.new_tokens + (summary.stop === "eos" ? ROOM : 0);
      const known = Object.hasOwn(menu, first.drafter.key);
      drafter.value = known ? first.drafter.key : Object.keys(menu)[0];
      values = known ? { ...first.drafter.options } : {};
      rule.value = "";
      chosen();
      const own = first.sampling.temperature === 0 ? "greedy" : menu[drafter.value].verifier;
      rule.value = first.verifier.key === own || !Object.hasOwn(rules[drafter.value], first.verifier.key) ? "" : first.verifier.key;
      temperature.value = first.sampling.temperature;
    }

    function clear() {
      const view = P.view(WHAT_IF);
      if (view) view.feedFirst("");
      P.show(WHAT_IF, { state: "idle", message: "" });
    }

    function ask() {
      const view = P.view(WHAT_IF);
      if (view) view.feedFirst(trace, { elsewhere: !P.ranHere(WATCH) });
      c.trigger("asked", { run: line, new_tokens: newTokens, drafter: drafter.value, verifier: rule.value, temperature: Number(temperature.value),
        options: JSON.stringify({ drafter: drafter.value, values }) });
    }

    P.follow(WATCH, look);
  };
})();

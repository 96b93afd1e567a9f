// "What if …": the finished run again with another drafter, rule or temperature, laid beside it.
(function () {
  "use strict";
  const P = (globalThis.DraftscopePage = globalThis.DraftscopePage || {});
  const WATCH = "watch", WHAT_IF = "whatif";
  const ROOM = 64;   // tokens beyond the end of a text, so that its last draft is not cut shorter than it was

  P.mounts[WHAT_IF] = (element) => Draftscope.mountBeside(element);

  P.whatIf = function (c) {
    const { el } = Draftscope, { drafters } = P.offer;
    let trace = null, line = "", newTokens = 0;

    const plain = (key) => ({ drafter: key, options: {}, verifier: "", rule_options: {} });
    const settings = { picker: { id: "whatif-drafter", label: "Drafter" }, ruleId: "whatif-rule", mark: "data-what" };
    const pair = P.pairControls(plain(Object.keys(drafters)[0]), settings, () => {});
    const temperature = el("input", { id: "whatif-temperature", type: "number", min: 0, max: 2, step: 0.05, inputmode: "decimal",
      oninput: () => pair.settle(Number(temperature.value)) });
    const run = el("button", { type: "button", id: "whatif-run", class: "pg-tool pg-go", text: "Run it beside", onclick: ask });
    const stop = el("button", { type: "button", id: "whatif-stop", class: "pg-tool", text: "Stop", disabled: true });
    const field = (label, control) => el("div", { class: "pg-what-field" }, el("label", { for: control.id, text: label }), control);
    const form = el("fieldset", { class: "pg-what-form" }, el("legend", { class: "pg-hidden", text: "What shall be different" }),
      el("div", { class: "pg-what-fields" }, pair.picker.element, field("Rule", pair.rule), field("Temperature", temperature)),
      el("div", { class: "pg-what-options" }, pair.options, pair.judging), el("div", { class: "pg-what-go" }, run, stop));
    const wait = el("p", { class: "pg-help", text: "This waits until the run has come to its end." });
    c.element.append(el("details", { class: "pg-what" },
      el("summary", {}, el("strong", { text: "What if …" }), " the same prompt and seed, with another drafter, rule or temperature?"), wait, form));

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
      temperature.value = first.sampling.temperature;
      pair.show(settingsOf(first));
      pair.settle(first.sampling.temperature);
    }

    /** The pair that made this run, as far as this page has it. */
    function settingsOf({ drafter, verifier, sampling }) {
      if (!Object.hasOwn(drafters, drafter.key)) return plain(Object.keys(drafters)[0]);
      const automatic = verifier.key === P.automaticRule(drafter.key, sampling.temperature);
      return { drafter: drafter.key, options: { ...drafter.options }, verifier: automatic ? "" : verifier.key, rule_options: { ...verifier.options } };
    }

    function clear() {
      const view = P.view(WHAT_IF);
      if (view) view.feedFirst("");
      P.show(WHAT_IF, { state: "idle", message: "" });
    }

    function ask() {
      const view = P.view(WHAT_IF);
      if (view) view.feedFirst(trace, { elsewhere: !P.ranHere(WATCH) });
      c.trigger("asked", { run: line, new_tokens: newTokens, pair: JSON.stringify(pair.state), temperature: Number(temperature.value) });
    }

    P.follow(WATCH, look);
  };
})();

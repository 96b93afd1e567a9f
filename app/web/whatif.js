// "What if …": the finished run again with another drafter, rule or temperature, laid beside it.
/** @import { Component } from "./types.d.ts" */
import { automaticRule } from "./choices.js";
import { differences, optionsOf } from "./differences.js";
import { offer } from "./offer.js";
import { pairControls } from "./pair.js";
import { follow, happen, ranHere, stateOf, traceOf, viewOf } from "./rooms.js";
import { finished } from "./runs.js";
import { el, find, freshId } from "../../viz/web/base.js";

const WATCH = "watch", WHAT_IF = "whatif";
const ROOM = 64;   // tokens beyond the end of a text, so that its last draft is not cut shorter than it was

/** @type {(c: Component) => void} */
export function whatIf(c) {
  const { drafters } = offer;
  let trace = null, line = "", newTokens = 0;

  const plain = (key) => ({ drafter: key, options: {}, verifier: "", rule_options: {} });
  const settings = { picker: { id: "whatif-drafter", label: "Drafter" }, ruleId: "whatif-rule", mark: "data-what" };
  const pair = pairControls(plain(Object.keys(drafters)[0]), settings, keepRule);
  const temperature = el("input",
    { id: "whatif-temperature", type: "number", min: 0, max: 2, step: 0.05, inputmode: "decimal",
      oninput: () => { pair.settle(Number(temperature.value)); tell(); } });
  const run = el("button",
    { type: "button", id: "whatif-run", class: "pg-tool pg-go", text: "Run it beside", onclick: ask });
  const stop = el("button", { type: "button", id: "whatif-stop", class: "pg-tool", text: "Stop", disabled: true });
  const field = (label, control) => el("div", { class: "pg-what-field" }, el("label", { for: control.id, text: label }),
    control);
  const things = {
    drafter: el("fieldset", { class: "pg-what-thing" }, pair.picker.element, pair.options),
    rule: el("fieldset", { class: "pg-what-thing" }, field("Rule", pair.rule), pair.judging),
    temperature: el("fieldset", { class: "pg-what-thing" }, field("Temperature", temperature)),
  };
  const NAMES = { drafter: "the drafter, with its options", rule: "the rule", temperature: "the temperature" };
  const group = freshId("what");
  const radio = (thing) => el("label", {},
    el("input", { type: "radio", name: group, value: thing, id: `whatif-change-${thing}`,
      onchange: () => choose(thing) }), ` ${NAMES[thing]}`);
  const says = el("p", { class: "pg-what-says", role: "status" });
  const form = el("fieldset", { class: "pg-what-form" },
    el("legend", { class: "pg-hidden", text: "What shall be different" }),
    el("div", { class: "pg-what-one", role: "radiogroup", "aria-label": "Change one thing" },
      el("span", { text: "Change one thing:" }), ...Object.keys(things).map(radio)),
    el("div", { class: "pg-what-things" }, ...Object.values(things)), says,
    el("div", { class: "pg-what-go" }, run, stop));
  const wait = el("p", { class: "pg-help", text: "This waits until the run has come to its end." });
  c.element.append(el("details", { class: "pg-what" },
    el("summary", {}, el("strong", { text: "What if …" }),
      " the same prompt and seed, with another drafter, rule or temperature?"), wait, form));
  let first = null;

  /** Let this one thing be changed; the others return to the run's settings. */
  function choose(thing) {
    find(`#whatif-change-${thing}`).checked = true;
    for (const [name, fields] of Object.entries(things)) fields.disabled = name !== thing;
    if (!first) return;
    temperature.value = first.sampling.temperature;
    pair.show(settingsOf(first));
    pair.settle(first.sampling.temperature);
    tell();
  }

  /** Keep the rule when the drafter changes, if it can judge the new one. */
  function keepRule() {
    const before = first && settingsOf(first);
    if (before && before.verifier && !things.drafter.disabled && !pair.state.verifier
      && Object.hasOwn(drafters[pair.state.drafter].rules, before.verifier)) {
      pair.show({ ...pair.state, verifier: before.verifier, rule_options: before.rule_options });
    }
    tell();
  }

  /** Tell the differences from the first run, and the consequences of a change. */
  function tell() {
    if (!first) return;
    const heat = Number(temperature.value), { drafter, verifier } = pair.state, rules = offer.rules;
    const told = differences("whatif",
      { prompt: first.prompt.text, pair: JSON.stringify(pair.state), temperature: heat,
        ...Object.fromEntries(["top_k", "top_p", "seed"].map((name) => [name, first.sampling[name]])) },
      [{ run: first }], null);
    const lines = [told.length ? `Changed: ${told.join(", ")}. All else stays as it was.` : "Nothing is changed yet."];
    const rule = verifier || automaticRule(drafter, heat);
    if (rule !== first.verifier.key && things.rule.disabled && rules[rule]) {
      const before = first.verifier.title || first.verifier.key;
      lines.push(`The rule has to change with it: ${rules[rule].title} instead of ${before}.`);
    }
    if (Boolean(heat) !== Boolean(first.sampling.temperature)) {
      const idle = drafters[drafter].options.filter(({ only }) => only === (heat ? "greedy" : "sampled"))
        .map(({ name, label }) => label || name.replaceAll("_", " "));
      if (idle.length) lines.push(`${heat ? "Above temperature 0" : "At temperature 0"} these options do nothing: ` +
        `${idle.join(", ")}. So the draft differs by more than the temperature.`);
    }
    says.textContent = lines.join(" ");
  }

  /** Take over the settings of the run on the screen, once it is finished. */
  function look() {
    const now = stateOf(WATCH) === "running" ? "" : traceOf(WATCH);
    if (now === trace) return;
    trace = now;
    const ready = Boolean(trace) && finished(trace);
    form.disabled = !ready;
    wait.hidden = ready;
    clear();
    if (!ready) return;
    line = trace.slice(0, trace.indexOf("\n"));
    first = JSON.parse(line);
    pair.writes(offer.models.includes(first.family) ? first.family : "");
    const summary = JSON.parse(trace.trimEnd().split("\n").pop());
    newTokens = summary.new_tokens + (summary.stop === "eos" ? ROOM : 0);
    choose(find("input[type=radio]:checked", c.element)?.value || "drafter");
  }

  /** The pair that made this run, as far as this page has it. */
  function settingsOf(made) {
    const { drafter, verifier, sampling } = made;
    if (!Object.hasOwn(drafters, drafter.key)) return plain(Object.keys(drafters)[0]);
    const automatic = verifier.key === automaticRule(drafter.key, sampling.temperature);
    return { drafter: drafter.key, options: optionsOf(made), verifier: automatic ? "" : verifier.key,
      rule_options: { ...verifier.options } };
  }

  function clear() {
    const view = viewOf(WHAT_IF);
    if (view) view.feedFirst("");
    happen(WHAT_IF, { kind: "cleared" });
  }

  function ask() {
    const view = viewOf(WHAT_IF);
    if (view) view.feedFirst(trace, { elsewhere: !ranHere(WATCH) });
    c.trigger("asked", { run: line, new_tokens: newTokens, pair: JSON.stringify(pair.state),
      temperature: Number(temperature.value) });
  }

  follow(WATCH, look);
}

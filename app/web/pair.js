// A drafter with its options, and a rule with its own: the controls that Watch and each lane of Compare share.
// The value is JSON: {"drafter": key, "options": {name: value}, "verifier": key or "" for the automatic one,
// "rule_options": {…}}.
/** @import { Component, Pair, PickerSettings } from "./types.d.ts" */
import { automaticRule, declaredOptions, missingPart, onModels, onTemperature, ownPair } from "./choices.js";
import { offer } from "./offer.js";
import { optionControls } from "./options.js";
import { makePicker } from "./picker.js";
import { el, freshId } from "../../viz/web/base.js";

const ruleLabel = (drafter, key) => (key ? `${offer.rules[key].title} · ${offer.drafters[drafter].rules[key]}`
  : "automatic");

/**
 * state: the pair; kept up to date, and changed() is called after each change. settings: picker (for makePicker),
 * ruleId, mark: the beginning of the attributes that name options. Returns the pieces, for the caller to arrange:
 * picker, options (summary and the drafter's options), rule (the list), judging (the rule's summary and options).
 * @param {Pair} state
 * @param {{ picker: PickerSettings, ruleId?: string, mark?: string }} settings
 * @param {() => void} changed
 */
export function pairControls(state, { picker: place, ruleId = freshId("rule"), mark = "data" }, changed) {
  const { drafters, rules } = offer;
  const options = el("div", { class: "pg-options" }), judging = el("div", { class: "pg-judging" });
  const rule = el("select", { id: ruleId, class: "pg-rule", onchange: () => {
    Object.assign(state, { verifier: rule.value, rule_options: {} });
    judge();
    changed();
  } });
  let temperature = 0, family = "", models = "[\"\",\"\"]", inForce = null, ofDrafter = null, ofRule = null;
  Object.assign(state, { options: {}, verifier: "", rule_options: {}, ...state });

  const picker = makePicker(place, (key) => {
    Object.assign(state, { drafter: key, options: {}, verifier: "", rule_options: {} });
    draw();
    changed();
  });

  /** Show the summary of the rule in force, and its options. */
  function judge() {
    inForce = state.verifier || automaticRule(state.drafter, temperature);
    const { title, summary, options: declared } = rules[inForce], exact = drafters[state.drafter].rules[inForce];
    ofRule = optionControls(declared, state.rule_options, changed, `${mark}-rule-option`);
    judging.replaceChildren(el("p", { class: "pg-summary", text: state.verifier ? summary
      : `Here: ${title} (${exact}). ${summary}` }), ...ofRule.elements);
    ofRule.settle(temperature);
  }

  function draw() {
    const { summary, rules: known } = drafters[state.drafter], missing = missingPart(state.drafter, family);
    const declared = declaredOptions(state.drafter, family);
    if (!Object.hasOwn(known, state.verifier)) state.verifier = "";
    picker.set(state.drafter);
    ofDrafter = optionControls(declared, state.options, changed, `${mark}-option`);
    options.replaceChildren(el("p", { class: "pg-summary", text: summary }),
      missing && el("p", { class: "pg-summary pg-missing", text: `It cannot run here: it ${missing}.` }) || "",
      ...ofDrafter.elements);
    ofDrafter.settle(temperature);
    rule.replaceChildren(...["", ...Object.keys(known)].map((key) => el("option",
      { value: key, text: ruleLabel(state.drafter, key), selected: key === state.verifier })));
    judge();
  }
  draw();
  return {
    picker, options, rule, judging, state,
    /** The rule's words in the list; "" for the automatic rule. */
    get ruleName() { return state.verifier && ruleLabel(state.drafter, state.verifier); },
    writes(now) {
      const next = JSON.stringify([now, ownPair()]), before = JSON.stringify(state);
      if (next === models) return;
      models = next;
      family = now;
      picker.writes(now);
      draw();
      if (JSON.stringify(state) !== before) changed();      // an option that cannot be chosen any more
    },
    show(next) { Object.assign(state, { options: {}, verifier: "", rule_options: {}, ...next }); draw(); },
    settle(now) {
      if (now === temperature) return;
      temperature = now;
      ofDrafter.settle(now);
      if (!state.verifier && automaticRule(state.drafter, now) !== inForce) judge();
      else ofRule.settle(now);
    },
  };
}

/**
 * Watch's pair. It sends the event "edited" when the visitor has changed something.
 * @type {(c: Component) => void}
 */
export function pair(c) {
  let written = c.props.value;
  const controls = pairControls(JSON.parse(written),
    { picker: { id: "drafter", label: "Drafter" }, ruleId: "verifier" }, () => {
      written = JSON.stringify(controls.state);
      c.props.value = written;
      tell();
      c.trigger("edited");
    });
  controls.options.id = "options";
  const forget = el("button", { type: "button", class: "pg-tool", id: "forget", text: "Forget it", onclick() {
    c.trigger("forget");
    said.textContent = "Forgotten.";
  } });
  const said = el("span", { class: "pg-said", role: "status" });
  const learned = el("div", { class: "pg-learned" },
    el("p", { class: "pg-help", text: "It learns from your runs here, for you alone." }), forget, said);
  const tell = () => {
    const { drafter, verifier } = controls.state;
    learned.hidden = !offer.drafters[drafter].learns && !(verifier && offer.rules[verifier].learns);
    said.textContent = "";
  };
  c.element.append(controls.picker.element, controls.options, learned,
    el("div", { class: "pg-rule-field" }, el("label", { for: "verifier", text: "Rule that keeps or refuses" }),
      controls.rule), controls.judging);
  c.watch("value", () => {
    if (c.props.value === written) return;
    written = c.props.value;
    controls.show(JSON.parse(written));
    tell();
  });
  tell();
  onTemperature("watch", controls.settle);
  onModels("watch", controls.writes);
}

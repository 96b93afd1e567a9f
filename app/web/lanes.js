// The lanes of a comparison: each a drafter with its own options and rule; two at least, props.most at most.
// The value is JSON: a list of pairs, as in pair.js.
/** @import { Component } from "./types.d.ts" */
import { offer } from "./offer.js";
import { missingPart, onModels, onTemperature } from "./choices.js";
import { pairControls } from "./pair.js";
import { el, setAttributes } from "../../viz/web/base.js";

const LEAST = 2;
const plain = (drafter) => ({ drafter, options: {}, verifier: "", rule_options: {} });

/** One lane's controls. state: its pair. hooks: changed(), removed(). */
function laneControl(state, hooks) {
  const pair = pairControls(state, { picker: { classes: "drafter", name: "Drafter" } },
    () => { head(); hooks.changed(); });
  const remove = el("button", { type: "button", class: "pg-tool pg-racer-remove", onclick: hooks.removed, text: "×" });
  const judged = el("div", { class: "pg-rule-field" }, el("label", { for: pair.rule.id, text: "rule" }), pair.rule);
  const inside = el("div", { role: "group" }, pair.options, judged, pair.judging);
  const summary = el("summary", {}), more = el("details", { class: "pg-racer-more" }, summary, inside);
  const follows = [onTemperature("compare", pair.settle), onModels("compare", pair.writes)];
  let at = 0;

  /** Write the text that shows while the details are closed, with the rule if it is not the automatic one. */
  function head() {
    const rule = pair.ruleName ? `: ${pair.ruleName}` : "";
    summary.textContent = `Rule and options${rule}`;
    summary.setAttribute("aria-label", `Rule and options of lane ${at}${rule}`);
  }

  return {
    state, remove, field: pair.picker.field,
    element: el("li", { class: "pg-racer" }, el("div", { class: "pg-racer-head" }, pair.picker.element, remove), more),
    forget() { for (const end of follows) end(); },
    number(n, removable) {
      at = n;
      head();
      pair.picker.rename(`Drafter of lane ${n}`);
      setAttributes(remove, { "aria-label": `Remove lane ${n}`, title: `Remove lane ${n}` });
      remove.disabled = !removable;
      inside.setAttribute("aria-label", `Lane ${n}`);
    },
  };
}

/** @type {(c: Component) => void} */
export function lanes(c) {
  const list = el("ol", { class: "pg-racers" });
  const more = el("button", { type: "button", class: "pg-tool", id: "add-lane", text: "Add a lane", onclick: add });
  const count = el("span", { class: "pg-help" });
  let written = null, sent = null, racers = [], family = "";

  function tell() {
    written = JSON.stringify(racers.map((lane) => lane.state));
    c.props.value = written;
    c.trigger("edited");
  }

  function open(state) {
    const lane = laneControl(state, { changed() { sent = null; tell(); }, removed: () => drop(lane) });
    racers.push(lane);
    list.append(lane.element);
    return lane;
  }

  function number() {
    racers.forEach((lane, i) => lane.number(i + 1, racers.length > LEAST));
    more.disabled = racers.length >= c.props.most;
    count.textContent = `${racers.length} of at most ${c.props.most}`;
  }

  /** A drafter that can run and does not race yet, if there is one. */
  function add() {
    const racing = new Set(racers.map((lane) => lane.state.drafter)), all = Object.entries(offer.drafters);
    const [key] = all.find(([one]) => !racing.has(one) && !missingPart(one, family)) || all[0];
    const lane = open(plain(key));
    sent = null;
    number(); tell();
    lane.field.focus();
  }

  function drop(lane) {
    const at = racers.indexOf(lane);
    racers.splice(at, 1);
    sent = null;
    lane.forget();
    lane.element.remove();
    number(); tell();
    racers[Math.min(at, racers.length - 1)].field.focus();
  }

  function build() {
    if (c.props.value === written) return;
    written = c.props.value;
    for (const lane of racers) lane.forget();
    racers = [];
    list.replaceChildren();
    JSON.parse(written).forEach(open);
    number();
    sent = written;
    fit();
  }

  /** Of lanes that nobody has changed, those that lack a part here give way to others that can run. */
  function fit() {
    if (!sent) return;
    const can = ({ drafter }) => !missingPart(drafter, family), able = JSON.parse(sent).filter(can);
    const others = Object.keys(offer.drafters).map(plain).filter(can);
    for (const other of others)
      if (able.length < LEAST && !able.some(({ drafter }) => drafter === other.drafter)) able.push(other);
    const keys = (pairs) => pairs.map(({ drafter }) => drafter).join();
    if (able.length < LEAST || keys(able) === keys(racers.map((lane) => lane.state))) return;
    for (const lane of racers) lane.forget();
    racers = [];
    list.replaceChildren();
    able.forEach(open);
    number(); tell();
  }

  setAttributes(c.element, { role: "group", "aria-label": "Lanes" });
  c.element.append(el("p", { class: "pg-racers-name", text: "Lanes", "aria-hidden": "true" }), list,
    el("div", { class: "pg-racers-foot" }, more, count));
  c.watch("value", build);
  build();
  onModels("compare", (now) => { family = now; fit(); });
}

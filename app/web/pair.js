// A drafter with its options, and a rule with its own: the controls that Watch, each lane of Compare and What if have alike.
// The value is JSON: {"drafter": key, "options": {name: value}, "verifier": key or "" for the automatic one, "rule_options": {…}}.
(function () {
  "use strict";
  const P = (globalThis.DraftscopePage = globalThis.DraftscopePage || {});
  const rooms = {};   // by tab: {temperature, heard}
  const room = (tab) => (rooms[tab] = rooms[tab] || { temperature: 0, heard: new Set() });

  /** The tab's temperature is now this one; its controls show what does something there. */
  P.setTemperature = function (tab, given) {
    const r = room(tab);
    r.temperature = Number(given) || 0;
    r.heard.forEach((hear) => hear(r.temperature));
  };
  /** Call hear(temperature) when that of the tab changes, and once now. Returns a function that ends it. */
  P.onTemperature = function (tab, hear) {
    room(tab).heard.add(hear);
    hear(room(tab).temperature);
    return () => room(tab).heard.delete(hear);
  };

  /** The rule that judges unless another is chosen. */
  P.automaticRule = (drafter, temperature) => P.offer.drafters[drafter].automatic[temperature > 0 ? "warm" : "cold"];
  const ruleLabel = (drafter, key) => (key ? `${P.offer.rules[key].title} · ${P.offer.drafters[drafter].rules[key]}` : "automatic");

  /**
   * state: the pair; kept up to date, after which changed() is told. settings: picker (of P.picker), ruleId, mark: what the
   * attributes begin with that name options. Returns the pieces, for whoever arranges them:
   * picker, options (summary and the drafter's options), rule (the list), judging (the rule's summary and options).
   */
  P.pairControls = function (state, { picker: place, ruleId = Draftscope.freshId("rule"), mark = "data" }, changed) {
    const { el } = Draftscope, { drafters, rules } = P.offer;
    const options = el("div", { class: "pg-options" }), judging = el("div", { class: "pg-judging" });
    const rule = el("select", { id: ruleId, class: "pg-rule", onchange: () => { Object.assign(state, { verifier: rule.value, rule_options: {} }); judge(); changed(); } });
    let temperature = 0, inForce = null, ofDrafter = null, ofRule = null;
    Object.assign(state, { options: {}, verifier: "", rule_options: {}, ...state });

    const picker = P.picker(place, (key) => {
      Object.assign(state, { drafter: key, options: {}, verifier: "", rule_options: {} });
      draw();
      changed();
    });

    /** What the rule in force does, and its options. */
    function judge() {
      inForce = state.verifier || P.automaticRule(state.drafter, temperature);
      const { title, summary, options: declared } = rules[inForce], exact = drafters[state.drafter].rules[inForce];
      ofRule = P.optionControls(declared, state.rule_options, changed, `${mark}-rule-option`);
      judging.replaceChildren(el("p", { class: "pg-summary", text: state.verifier ? summary : `Here: ${title} (${exact}). ${summary}` }), ...ofRule.elements);
      ofRule.settle(temperature);
    }

    function draw() {
      const { summary, missing, options: declared, rules: known } = drafters[state.drafter];
      if (!Object.hasOwn(known, state.verifier)) state.verifier = "";
      picker.set(state.drafter);
      ofDrafter = P.optionControls(declared, state.options, changed, `${mark}-option`);
      options.replaceChildren(el("p", { class: "pg-summary", text: summary }),
        missing && el("p", { class: "pg-summary pg-missing", text: `It cannot run here: it ${missing}.` }) || "", ...ofDrafter.elements);
      ofDrafter.settle(temperature);
      rule.replaceChildren(...["", ...Object.keys(known)].map((key) => el("option", { value: key, text: ruleLabel(state.drafter, key), selected: key === state.verifier })));
      judge();
    }
    draw();
    return {
      picker, options, rule, judging, state,
      /** The rule as it is written in the list; "" where it is the automatic one. */
      get ruleName() { return state.verifier && ruleLabel(state.drafter, state.verifier); },
      show(next) { Object.assign(state, { options: {}, verifier: "", rule_options: {}, ...next }); draw(); },
      settle(now) {
        if (now === temperature) return;
        temperature = now;
        ofDrafter.settle(now);
        if (!state.verifier && P.automaticRule(state.drafter, now) !== inForce) judge();
        else ofRule.settle(now);
      },
    };
  };

  /** Watch's own. Says "edited" when the visitor has changed something. */
  P.pair = function (c) {
    const { el } = Draftscope;
    let written = c.props.value;
    const pair = P.pairControls(JSON.parse(written), { picker: { id: "drafter", label: "Drafter" }, ruleId: "verifier" }, () => {
      written = JSON.stringify(pair.state);
      c.props.value = written;
      tell();
      c.trigger("edited");
    });
    pair.options.id = "options";
    const forget = el("button", { type: "button", class: "pg-tool", id: "forget", text: "Forget it", onclick() { c.trigger("forget"); said.textContent = "Forgotten."; } });
    const said = el("span", { class: "pg-said", role: "status" });
    const learned = el("div", { class: "pg-learned" }, el("p", { class: "pg-help", text: "It learns from your runs here, for you alone." }), forget, said);
    const tell = () => { learned.hidden = !P.offer.drafters[pair.state.drafter].learns; said.textContent = ""; };
    c.element.append(pair.picker.element, pair.options, learned,
      el("div", { class: "pg-rule-field" }, el("label", { for: "verifier", text: "Rule that keeps or refuses" }), pair.rule), pair.judging);
    c.watch("value", () => {
      if (c.props.value === written) return;
      written = c.props.value;
      pair.show(JSON.parse(written));
      tell();
    });
    tell();
    P.onTemperature("watch", pair.settle);
  };
})();

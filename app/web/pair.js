// A drafter with its options, and a rule with its own: the controls that Watch, each lane of Compare and What if share.
// The value is JSON: {"drafter": key, "options": {name: value}, "verifier": key or "" for the automatic one,
// "rule_options": {…}}.
(function () {
  "use strict";
  const P = (globalThis.DraftscopePage = globalThis.DraftscopePage || {});

  /**
   * A setting of each tab that its pairs follow. follow(tab, hear) calls hear(value) when the setting changes, and once
   * now, and returns a function that ends this.
   */
  function shared(first) {
    const tabs = {}, of = (tab) => (tabs[tab] = tabs[tab] || { value: first, heard: new Set() });
    return {
      set(tab, value) { of(tab).value = value; of(tab).heard.forEach((hear) => hear(value)); },
      again() { for (const one of Object.values(tabs)) one.heard.forEach((hear) => hear(one.value)); },
      follow(tab, hear) { of(tab).heard.add(hear); hear(of(tab).value); return () => of(tab).heard.delete(hear); },
    };
  }
  const temperatures = shared(0), families = shared("");
  /** Set the tab's temperature; its controls show the options that have an effect there. */
  P.setTemperature = (tab, given) => temperatures.set(tab, Number(given) || 0);
  P.onTemperature = temperatures.follow;
  /** Set the tab's family of models, "" for text; drafters that lack a part in it cannot be chosen. */
  P.setModels = (tab, name) => families.set(tab, name || "");
  P.onModels = families.follow;
  let own = null;   // the visitor's own pair: {loaded, missing}
  /** Take over what is loaded for the visitor: {loaded: the pair or null, missing: why drafters cannot run with it, by key}. */
  P.setOwnPair = function ({ loaded, missing }) {
    const before = P.ownPair();
    own = loaded ? { loaded, missing } : null;
    if (P.ownPair() !== before) families.again();
  };
  /** The visitor's own pair as a text, "" without one. */
  P.ownPair = () => (own ? JSON.stringify([own.loaded.target, own.loaded.draft]) : "");
  /** The name of the visitor's own target, "" without one. */
  P.ownTarget = () => (own ? own.loaded.target : "");
  /** Why a drafter cannot run with this family of models, or with the visitor's own pair; "" where it can. */
  P.missing = function (drafter, family) {
    const { missing, elsewhere = {} } = P.offer.drafters[drafter];
    if (family) return elsewhere[family] || "";
    return own ? own.missing[drafter] || "" : missing;
  };
  /** A drafter's options here; an own pair has one draft, so no other can be chosen. */
  P.declared = (drafter, family) => P.offer.drafters[drafter].options.filter(({ part }) => !part || family || !own);

  /** The rule that judges unless another is chosen. */
  P.automaticRule = (drafter, temperature) => P.offer.drafters[drafter].automatic[temperature > 0 ? "warm" : "cold"];
  const ruleLabel = (drafter, key) => (key ? `${P.offer.rules[key].title} · ${P.offer.drafters[drafter].rules[key]}` : "automatic");

  /**
   * state: the pair; kept up to date, and changed() is called after each change. settings: picker (for P.picker),
   * ruleId, mark: the beginning of the attributes that name options. Returns the pieces, for the caller to arrange:
   * picker, options (summary and the drafter's options), rule (the list), judging (the rule's summary and options).
   */
  P.pairControls = function (state, { picker: place, ruleId = Draftscope.freshId("rule"), mark = "data" }, changed) {
    const { el } = Draftscope, { drafters, rules } = P.offer;
    const options = el("div", { class: "pg-options" }), judging = el("div", { class: "pg-judging" });
    const rule = el("select", { id: ruleId, class: "pg-rule", onchange: () => { Object.assign(state, { verifier: rule.value, rule_options: {} }); judge(); changed(); } });
    let temperature = 0, family = "", models = "[\"\",\"\"]", inForce = null, ofDrafter = null, ofRule = null;
    Object.assign(state, { options: {}, verifier: "", rule_options: {}, ...state });

    const picker = P.picker(place, (key) => {
      Object.assign(state, { drafter: key, options: {}, verifier: "", rule_options: {} });
      draw();
      changed();
    });

    /** Show the summary of the rule in force, and its options. */
    function judge() {
      inForce = state.verifier || P.automaticRule(state.drafter, temperature);
      const { title, summary, options: declared } = rules[inForce], exact = drafters[state.drafter].rules[inForce];
      ofRule = P.optionControls(declared, state.rule_options, changed, `${mark}-rule-option`);
      judging.replaceChildren(el("p", { class: "pg-summary", text: state.verifier ? summary : `Here: ${title} (${exact}). ${summary}` }), ...ofRule.elements);
      ofRule.settle(temperature);
    }

    function draw() {
      const { summary, rules: known } = drafters[state.drafter], missing = P.missing(state.drafter, family), declared = P.declared(state.drafter, family);
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
      /** The rule's words in the list; "" for the automatic rule. */
      get ruleName() { return state.verifier && ruleLabel(state.drafter, state.verifier); },
      writes(now) {
        const next = JSON.stringify([now, P.ownPair()]), before = JSON.stringify(state);
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
        if (!state.verifier && P.automaticRule(state.drafter, now) !== inForce) judge();
        else ofRule.settle(now);
      },
    };
  };

  /** Watch's pair. It sends the event "edited" when the visitor has changed something. */
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
    P.onModels("watch", pair.writes);
  };
})();

// One lane of a comparison: its head, bars, small tree, text and sentence.
(function (D) {
  "use strict";

  /** The options in words: "length 4, width 2; ". */
  function settings(drafter) {
    const said = D.settings(drafter).map((pair) => pair.join(" "));
    return said.length ? `${said.join(", ")}; ` : "";
  }

  /** onTime(ms): the reader chose a time. about(key): what a drafter does, in a sentence; "" where nobody knows. */
  D.lane = function (name, glossary, onTime, about = () => "") {
    const model = D.traceModel();
    const panels = D.panels(model, glossary, { ids: false, brief: true, timeline: (box) => D.raceLine(box, { onTime }), onSeek: (step) => onTime(model.steps[step].view.start + model.steps[step].view.total) });
    const called = D.el("strong", { class: "ds-lane-name", text: D.visible(name) });
    let word = called;                                        // what holds the name: an explained word once the drafter is known
    const rule = D.el("span", { class: "ds-lane-rule" }), numbers = D.el("span", { class: "ds-lane-numbers" });
    const element = D.el("article", { class: "ds-card ds-lane", "data-lane": name, "aria-label": `Lane ${D.visible(name)}` },
      D.el("header", { class: "ds-lane-head" }, called, rule, numbers),
      panels.timeline, panels.tracks,
      D.el("div", { class: "ds-lane-body" }, panels.tree, D.el("div", { class: "ds-lane-words" }, panels.text, panels.inspector)),
      panels.sources, panels.exhibits);
    let told = null, taken = 0, drawn = -2;

    /** The lane's name explains its drafter. */
    function explain({ key, family }) {
      const line = about(key) || (Object.hasOwn(D.GLOSSARY, family) && D.GLOSSARY[family]);
      if (!line) return;
      word = glossary.tell(D.el("button", { type: "button", class: "ds-term", text: word.textContent }), line);
      called.replaceChildren(word);
    }

    return {
      name, model, panels, element, wanted: null,
      get drawn() { return drawn; },
      /** The name that readers see. */
      call(title) { D.write(word, title); D.set(element, { "aria-label": `Lane ${title}` }); },
      clear() { model.clear(); panels.reset(); taken = 0; drawn = -2; },
      feedText(ndjson) { const { reset } = model.feed(ndjson); if (reset) { panels.reset(); drawn = -2; } panels.grow(); },
      feedEntries(entries) { for (; taken < entries.length; taken++) model.add(entries[taken]); panels.grow(); },
      /** Draw the lane as it was after the step with this index (-1: before the first); false if nothing changed. */
      show(index) {
        const news = index !== drawn;
        if (news && index < 0) panels.blank();
        else if (news) panels.draw(index, null);
        drawn = index;
        if (told !== model.run && model.run) {
          told = model.run;
          explain(told.drafter);
          const exactness = D.exactness(told.verifier), badge = glossary.term(exactness, exactness);
          badge.classList.add("ds-badge");
          rule.replaceChildren(badge, ` ${settings(told.drafter)}rule ${D.title(told.verifier.title || told.verifier.key)}`);
        }
        const step = model.steps[index], tokens = step ? step.view.firstIndex + step.view.tokens : 0;
        D.write(numbers, step ? `${D.plural(tokens, "token")} in ${D.plural(step.view.passes, "pass", "passes")} of the target, ${D.ms(step.view.start + step.view.total)}` : "");
        return news;
      },
    };
  };
})(globalThis.Draftscope);

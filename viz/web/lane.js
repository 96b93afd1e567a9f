// One lane of a comparison: its head, bars, small tree, text and sentence.
/** @import { Glossary } from "./view-types.d.ts" */
import { el, setAttributes, writeText } from "./base.js";
import { GLOSSARY } from "./glossary.js";
import { settingsOf } from "./outcome.js";
import { makePanels } from "./panels.js";
import { raceLine } from "./race.js";
import { exactnessOf, traceModel } from "./trace.js";
import { duration, oneLine, plural, visible } from "./words.js";

/** The options in words: "length 4, width 2; ". */
function settings(drafter) {
  const said = settingsOf(drafter).map((pair) => pair.join(" "));
  return said.length ? `${said.join(", ")}; ` : "";
}

/**
 * onTime(ms): the reader chose a time. about(key): what a drafter does, in a sentence; "" where nobody knows.
 * @param {string} name
 * @param {Glossary} glossary
 * @param {(ms: number) => void} onTime
 * @param {(key: string) => string} [about]
 */
export function makeLane(name, glossary, onTime, about = () => "") {
  const model = traceModel();
  const panels = makePanels(model, glossary,
    { ids: false, brief: true, timeline: (box) => raceLine(box, { onTime }),
      onSeek: (step) => onTime(model.steps[step].view.start + model.steps[step].view.total) });
  const called = el("strong", { class: "ds-lane-name", text: visible(name) });
  // what holds the name: an explained word once the drafter is known
  let word = called;
  const rule = el("span", { class: "ds-lane-rule" }), numbers = el("span", { class: "ds-lane-numbers" });
  const element = el("article", { class: "ds-card ds-lane", "data-lane": name, "aria-label": `Lane ${visible(name)}` },
    el("header", { class: "ds-lane-head" }, called, rule, numbers),
    panels.timeline, panels.tracks,
    el("div", { class: "ds-lane-body" }, panels.tree,
      el("div", { class: "ds-lane-words" }, panels.text, panels.inspector)),
    panels.sources, panels.exhibits);
  let told = null, taken = 0, drawn = -2;

  /** The lane's name explains its drafter. */
  function explain({ key, family }) {
    const line = about(key) || (Object.hasOwn(GLOSSARY, family) && GLOSSARY[family]);
    if (!line) return;
    word = glossary.tell(el("button", { type: "button", class: "ds-term", text: word.textContent }), line);
    called.replaceChildren(word);
  }

  return {
    name, model, panels, element, wanted: null,
    get drawn() { return drawn; },
    /** The name that readers see. */
    call(title) { writeText(word, title); setAttributes(element, { "aria-label": `Lane ${title}` }); },
    clear() { model.clear(); panels.reset(); taken = 0; drawn = -2; },
    feedText(ndjson) {
      const { reset } = model.feed(ndjson);
      if (reset) { panels.reset(); drawn = -2; }
      panels.grow();
    },
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
        const exactness = exactnessOf(told.verifier), badge = glossary.term(exactness, exactness);
        badge.classList.add("ds-badge");
        rule.replaceChildren(badge,
          ` ${settings(told.drafter)}rule ${oneLine(told.verifier.title || told.verifier.key)}`);
      }
      const step = model.steps[index], tokens = step ? step.view.firstIndex + step.view.tokens : 0;
      writeText(numbers, step
        ? `${plural(tokens, "token")} in ${plural(step.view.passes, "pass", "passes")} of the target, ` +
        `${duration(step.view.start + step.view.total)}` : "");
      return news;
    },
  };
}

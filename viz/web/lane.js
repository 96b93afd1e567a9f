// One lane of a comparison: its name and count, bars and text; tree and sentence on demand.
/** @import { Glossary } from "./view-types.d.ts" */
import { el, setAttributes, writeText } from "./base.js";
import { exactnessBadge } from "./facts.js";
import { GLOSSARY } from "./glossary.js";
import { settingsOf } from "./outcome.js";
import { makePanels } from "./panels.js";
import { raceLine } from "./race.js";
import { traceModel } from "./trace.js";
import { duration, oneLine, plural, visible } from "./words.js";

/** The options in words: "length 4, width 2; ". */
function settings(drafter) {
  const said = settingsOf(drafter).map((pair) => pair.join(" "));
  return said.length ? `${said.join(", ")}; ` : "";
}

/**
 * onTime(ms): the reader chose a time. about(key): what a drafter does, in a sentence; "" where nobody knows.
 * watch(name): brings the lane to Watch; null where it cannot.
 * @param {string} name
 * @param {Glossary} glossary
 * @param {(ms: number) => void} onTime
 * @param {(key: string) => string} about
 * @param {((name: string) => void) | null} watch
 */
export function makeLane(name, glossary, onTime, about, watch) {
  const model = traceModel();
  const panels = makePanels(model, glossary,
    { ids: false, brief: true, timeline: (box) => raceLine(box, { onTime }),
      onSeek: (step) => onTime(model.steps[step].view.start + model.steps[step].view.total) });
  const called = el("strong", { class: "ds-lane-name", text: visible(name) });
  // what holds the name: an explained word once the drafter is known
  let word = called;
  const exact = el("span", {}), rule = el("p", { class: "ds-lane-rule" });
  const numbers = el("span", { class: "ds-lane-numbers" });
  const more = el("div", { class: "ds-lane-more", hidden: true }, rule, panels.tree, panels.inspector, panels.sources,
    panels.exhibits);
  const button = (text, onclick) => el("button", { type: "button", class: "ds-choice", text, onclick });
  const look = button("Details", () => {
    more.hidden = !more.hidden;
    setAttributes(look, { "aria-expanded": String(!more.hidden) });
  });
  setAttributes(look, { "aria-expanded": "false" });
  const element = el("article", { class: "ds-card ds-lane", "data-lane": name, "aria-label": `Lane ${visible(name)}` },
    el("header", { class: "ds-lane-head" }, called, numbers,
      el("div", { class: "ds-lane-foot" },
        el("span", { class: "ds-choices" }, look, watch && button("Watch it", () => watch(name))), exact)),
    el("div", { class: "ds-lane-words" }, panels.timeline, panels.tracks, panels.text), more);
  let told = null, taken = 0, drawn = -2, explained = -2;

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
    /**
     * Draw the lane as it was after the step with this index (-1: before the first); false if nothing changed. telling:
     * the step to explain, of those that are shown.
     */
    show(index, telling = index) {
      const news = index !== drawn || telling !== explained;
      if (news && index < 0) panels.blank();
      else if (news) panels.draw(telling, null, undefined, index);
      drawn = index; explained = telling;
      if (told !== model.run && model.run) {
        told = model.run;
        explain(told.drafter);
        exact.replaceChildren(exactnessBadge(glossary, told));
        writeText(rule, `${settings(told.drafter)}rule ${oneLine(told.verifier.title || told.verifier.key)}`);
      }
      const step = model.steps[index], tokens = step ? step.view.firstIndex + step.view.tokens : 0;
      writeText(numbers, step
        ? `${plural(tokens, "token")} in ${plural(step.view.passes, "pass", "passes")}, ` +
        `${duration(step.view.start + step.view.total)}` : "");
      return news;
    },
  };
}

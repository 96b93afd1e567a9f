// Two runs of the same prompt side by side, on one axis of text positions: the public mountBeside.
import { clamp, coalesce, el, followTheme, followWidth, setAttributes } from "./base.js";
import { makeDifference } from "./difference.js";
import { makeGlossary } from "./glossary.js";
import { settingsOf } from "./outcome.js";
import { makePanels } from "./panels.js";
import { spanLine } from "./span.js";
import { exactnessOf, traceModel } from "./trace.js";
import { iconButton } from "./transport.js";
import { runningText } from "./words.js";

const SETTINGS = {
  drafter: (run) => [run.drafter.title || run.drafter.key, ...settingsOf(run.drafter)
    .map((pair) => pair.join(" "))].join(", "),
  rule: (run) => run.verifier.title || run.verifier.key,
  temperature: (run) => `temperature ${run.sampling.temperature}`,
};

function lane(name, title, glossary, onToken) {
  const model = traceModel();
  const last = (step) => model.steps[step].view.firstIndex + model.steps[step].view.tokens - 1;
  const panels = makePanels(model, glossary,
    { ids: false, brief: true, timeline: (box) => spanLine(box, { onToken }), onSeek: (step) => onToken(last(step)) });
  const setting = el("span", { class: "ds-lane-rule" }), numbers = el("span", { class: "ds-lane-numbers" });
  return {
    model, panels, setting,
    element: el("article", { class: "ds-card ds-lane", "data-run": name, "aria-label": title },
      el("header", { class: "ds-lane-head" }, el("strong", { class: "ds-lane-name", text: title }), numbers, setting),
      el("div", {}, panels.timeline, panels.tracks), el("div", {}, panels.tree, panels.sources), panels.text,
      panels.inspector, el("div", {}, panels.exhibits)),
    feed(ndjson) {
      if (model.feed(ndjson).reset) panels.reset();
      panels.grow();
    },
    /**
     * Show the step that wrote the token with this index, or the last step of a shorter text. why: explain this token.
     */
    show(index, why) {
      const at = model.stepOfIndex(Math.min(index, model.tokens - 1)), step = model.steps[at];
      if (!step) { panels.blank(); numbers.textContent = ""; return; }
      if (at !== panels.shown) { panels.draw(at, null); panels.strip.scroll(panels.strip.newest()); }
      panels.select(why && index < model.tokens ? model.outputNode(step, index - step.view.firstIndex) : null);
      panels.line.at(index);
      numbers.textContent = `step ${at + 1} of ${model.steps.length}`;
    },
  };
}

/** The setting in words; differences from the other run are highlighted. */
function describe(one, other, glossary) {
  const run = one.model.run, against = other.model.run;
  if (!run) return one.setting.replaceChildren();
  const word = exactnessOf(run.verifier), badge = glossary.term(word, word);
  badge.classList.add("ds-badge");
  const parts = Object.values(SETTINGS)
    .map((write) => el("span",
      { class: "ds-setting", "data-changed": Boolean(against) && write(run) !== write(against),
        text: runningText(write(run)) }));
  return one.setting.replaceChildren(...parts.slice(0, 2), badge, parts[2]);
}

/** @param {Element} element */
export function mountBeside(element) {
  const root = el("section", { class: "ds ds-beside", "aria-label": "Two runs beside each other", hidden: true });
  element.replaceChildren(root);
  const glossary = makeGlossary(root), first = lane("first", "First", glossary, seek);
  const second = lane("what-if", "What if", glossary, seek), both = [first, second];
  const difference = makeDifference(glossary), note = el("p", { class: "ds-message", role: "status", hidden: true });
  let position = 0, parts = null, running = false, elsewhere = false;

  const knob = el("input",
    { class: "ds-race-range", type: "range", min: 1, max: 1, value: 1, step: 1, "aria-label": "Token of the text",
      oninput: () => seek(Number(knob.value) - 1) });
  const where = el("span", { class: "ds-where" });
  const to = el("button",
    { type: "button", class: "ds-choice ds-to-part", text: "Where they part", hidden: true,
      onclick: () => seek(parts) });
  root.append(note, el("div", { class: "ds-card ds-race-card" },
    el("div", { class: "ds-transport", role: "group", "aria-label": "Both runs" },
      iconButton("first", "First token", () => seek(0)),
      iconButton("previous", "Previous step of either", () => seek(nextEnd(-1))),
      iconButton("next", "Next step of either", () => seek(nextEnd(1))),
      iconButton("last", "Last token", () => seek(end())), to, where), knob),
    el("div", { class: "ds-pair" }, first.element, second.element), difference.element);
  const unfollow = followTheme(root), unwatch = followWidth(root), ask = coalesce(draw);

  function end() { return Math.max(0, ...both.map((one) => one.model.tokens - 1)); }
  function seek(index) { running = false; position = clamp(index, 0, end()); ask(); }
  /** The next or the previous token at which a step of either run ended. */
  function nextEnd(by) {
    const ends = both.flatMap((one) => one.model.steps.map((step) => step.view.firstIndex + step.view.tokens - 1))
      .sort((a, b) => a - b);
    return by > 0 ? ends.find((i) => i > position) ?? end() : ends.reverse().find((i) => i < position) ?? 0;
  }

  function draw() {
    const last = end();
    if (running) position = Math.max(0, second.model.tokens - 1);
    position = clamp(position, 0, last);
    both.forEach((one) => { one.panels.line.scale(last + 1); one.show(position, position === parts); });
    setAttributes(knob, { max: last + 1, "aria-valuetext": `token ${position + 1} of ${last + 1}` });
    knob.value = position + 1;
    where.textContent = `token ${position + 1} of ${last + 1}`;
  }

  function compare() {
    parts = difference.draw(first.model, second.model, elsewhere);
    to.hidden = parts === null;
    both.forEach((one) => { one.panels.strip.differ(parts); one.panels.line.part(parts); });
  }

  /** Both runs are finished: show where they part, or the end of the shared text. */
  function finish() {
    seek(parts === null ? end() : parts);
    ask.now();
  }

  const view = {
    /** The finished run for comparison. options.elsewhere: it was timed on another machine. */
    feedFirst(ndjson, options = {}) { elsewhere = Boolean(options.elsewhere); first.feed(ndjson); view.feed(""); },
    /** The second run so far; "" removes the pair. */
    feed(ndjson) {
      second.feed(ndjson);
      root.hidden = !second.model.run || !first.model.run;
      if (second.model.trouble) view.setState("error", second.model.trouble);
      describe(first, second, glossary);
      describe(second, first, glossary);
      compare();
      if (second.model.summary) finish(); else ask();
    },
    setState(state, message) {
      note.textContent = message || "";
      setAttributes(note, { hidden: !message, "data-kind": state });
      if (state === "running") running = true;
      first.panels.tree.setAttribute("data-state", "done");
      second.panels.tree.setAttribute("data-state", state);
      ask();
    },
    seek,
    get position() { return position; },
    get parts() { return parts; },
    destroy() { ask.stop(); unfollow(); unwatch(); both.forEach((one) => one.panels.destroy()); root.remove(); },
  };
  return view;
}

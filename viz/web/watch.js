// The whole view of one run: the public mountWatch.
/** @import { WatchOptions } from "./view-types.d.ts" */
import { el, fingers, followTheme, followWidth, setAttributes, stillWanted, writeText } from "./base.js";
import { makeAnnouncer } from "./announcer.js";
import { runFacts } from "./facts.js";
import { makeGlossary } from "./glossary.js";
import { edgeKey, legend } from "./legend.js";
import { makePanels } from "./panels.js";
import { makePlayer } from "./player.js";
import { proofLine } from "./proof.js";
import { speedLine } from "./speed.js";
import { stepSentence } from "./step-words.js";
import { stageKey } from "./stages.js";
import { traceModel } from "./trace.js";
import { choiceGroup, followKeys, iconButton, largeButton, makeTransport } from "./transport.js";
import { duration, plural } from "./words.js";

const ABOVE = 44;                                  // px of the canvas in which its caption and its tools stand
/** The height of what lies over the canvas; 0 where it stands below. */
const lying = (element) => (getComputedStyle(element).position === "absolute" ? element.offsetHeight : 0);

/**
 * @param {Element} element
 * @param {WatchOptions} [options]
 */
export function mountWatch(element, options) {
  options = { ids: true, keys: true, autoplay: true, onSelect: null, changed: () => {}, first: null, ...options };
  const root = el("section", { class: "ds", "aria-label": "Speculative decoding, step by step" });
  element.replaceChildren(root);
  const model = traceModel();
  const glossary = makeGlossary(root);
  const kinds = legend(glossary, edgeKey(glossary));
  const panels = makePanels(model, glossary, { ids: options.ids, above: ABOVE, below: () => lying(kinds),
    onSelect(found) {
    if (options.onSelect) options.onSelect(found);
    options.changed();
  }, onSeek: (step) => player.seek(step), flights: root });
  let state = "idle", wanted = null, since = 0, waiting = 0, ran = false, asked = "idle", fresh = true, checked = null,
    measuring = false;

  const player = makePlayer(model, { show(step, stage, verdicts) {
    panels.draw(step, stage, verdicts);
    caption(step, stage);
    around();
  }, changed: () => around() });
  const transport = makeTransport(player, model), facts = runFacts(glossary), proof = proofLine(glossary);
  const speed = speedLine(glossary);
  const key = stageKey(glossary), announcer = makeAnnouncer();
  const phase = el("span", { class: "ds-phase", hidden: true }), told = el("span", {});
  const words = el("p", { class: "ds-caption" }, phase, told), note = el("p", { class: "ds-message", role: "status" });
  const weight = choiceGroup("Width of a cell", [["p", "by p"], ["q", "by q"]],
    (field) => panels.setMode("icicle", field));
  weight.element.hidden = true;
  const shape = choiceGroup("View", [["tree", "Tree"], ["icicle", "Icicle"]], (mode) => {
    panels.setMode(mode);
    weight.element.hidden = mode !== "icicle";
    zoom.hidden = mode === "icicle";
    around();
  });
  for (const button of [...weight.element.children, ...shape.element.children])
    glossary.explain(button, button.dataset.value);
  const large = largeButton(root), cover = el("div", { class: "ds-cover" });
  const word = el("span", { class: "ds-pace-word" });
  const zoom = el("div", { class: "ds-zoom", role: "group", "aria-label": "Zoom" },
    iconButton("minus", "Smaller", () => panels.camera.zoomBy(0.8)),
    iconButton("plus", "Larger", () => panels.camera.zoomBy(1.25)),
    iconButton("fit", "Whole tree", () => panels.camera.fit(true)));

  root.append(el("div", { class: "ds-head" }, proof.element, speed.why, speed.element), announcer.element, note,
    el("div", { class: "ds-room" },
      el("div", { class: "ds-card ds-tree-card" },
        el("div", { class: "ds-tree-box" }, panels.tree, kinds, word,
          el("div", { class: "ds-bar-top" }, words,
            el("div", { class: "ds-tools" }, shape.element, weight.element, zoom, large.element)), cover),
        panels.sources),
      el("div", { class: "ds-card ds-text-card" }, panels.text),
      el("div", { class: "ds-card ds-timeline-card" }, transport.element, panels.timeline, key.element, panels.tracks),
      el("div", { class: "ds-card ds-inspector-card" }, panels.inspector)),
    el("div", { class: "ds-foot" }, proof.more, facts.element),
    panels.exhibits);

  const unfollow = followTheme(root), unwatch = followWidth(root);
  const unkey = options.keys ? followKeys(root, player) : () => {};

  const HINT = options.keys && !fingers() ? "arrow keys step · space plays" : "";
  const PHASES = { draft: "Guess", judge: "Check", commit: "Keep" };

  function caption(index, stage) {
    const step = model.steps[index];
    writeText(phase, PHASES[stage] || "");
    phase.hidden = !PHASES[stage];
    if (!step) { writeText(told, ""); return; }
    const ms = step.milliseconds || {};
    writeText(told,
      stage === "draft"
        ? `The draft proposes ${plural(step.view.count, "token")}${ms.draft ? ` in ${duration(ms.draft)}` : ""}.`
        : stage === "judge" ? `One pass of the target reads them all${ms.verify ? `, ${duration(ms.verify)}` : ""}.`
        : stepSentence(step));
    if (stage !== "draft" && stage !== "judge")
      announcer.say(`Step ${index + 1} of ${model.steps.length}: ${stepSentence(step)}`);
  }

  function setTarget(next) {
    since = next === "done" || next === "paused" ? performance.now() : -1e9;
    wanted = next;
    settle();
  }

  function around() {
    transport.draw();
    facts.draw(model, player.playing || !model.summary ? player.finished : model.steps.length - 1);
    proof.draw(model, checked, { playing: player.playing, shown: player.finished });
    speed.draw(checked, measuring, model.tokens / Math.max(1, model.steps.length));
    key.draw(model.steps[player.step]);
    panels.rest(!player.playing);
    writeText(word, zoom.hidden ? "" : player.word || (model.steps.length ? HINT : ""));
    settle();
    options.changed();
  }

  /** data-state changes only when the last step is on the screen. The trace may arrive just after the state. */
  function settle() {
    if (wanted === null || player.behind) return;
    const now = performance.now();
    if (wanted === "done" && (ran || !model.summary) && now - since < 600 || now - since < 30) {
      if (!waiting) waiting = setTimeout(() => { waiting = 0; settle(); }, 30);
      return;
    }
    state = wanted; wanted = null;
    panels.tree.setAttribute("data-state", state);
  }

  const view = {
    feed(ndjson) {
      const { reset, added } = model.feed(ndjson);
      if (reset || fresh) {
        fresh = false;
        checked = null;
        measuring = false;
        player.reset();
        panels.reset();
        caption(-1);
      }
      panels.grow();
      if (model.trouble) view.setState("error", model.trouble);
      if (added && player.step < 0 && !player.live && asked !== "paused") {
        // a run so short that "done" arrived before its trace
        if (ran) { player.follow(); player.arrived(); player.settle(); }
          else if (options.autoplay && model.summary && !stillWanted()) player.play();
        else player.seek(options.first === null ? player.telling : options.first);
      } else player.arrived();
      if (added) ran = false;
      if (asked === "idle" && !player.live) setTarget(model.summary ? "done" : "idle");
      around();
    },
    setState(next, text) {
      const message = text === undefined || text === null ? "" : String(text);
      note.textContent = message;
      setAttributes(note, { "data-kind": next, hidden: !message });
      if (next === asked && next === "running") return;
      asked = next;
      if (next === "running") { ran = true; player.follow(); }
        else player.settle();
      setTarget(next);
      around();
    },
    play: () => player.play(),
    pause: () => player.pause(),
    goto: (step) => player.seek(step),
    /**
     * Take the comparison with plain decoding on the same prompt; null: plain decoding was not run. more: it is being
     * measured.
     */
    prove(found, more = false) {
      checked = found;
      measuring = more;
      panels.strip.differ(found?.comparable && !found.alike ? found.index : null);
      around();
    },
    /**
     * Lay this element over the tree and dim the picture, because it shows something else; null removes it. running:
     * no dimming.
     */
    cover(over, running = false) {
      cover.replaceChildren(...(over ? [over] : []));
      setAttributes(root, { "data-stale": Boolean(over) && !running });
    },
    /** The node that the reader has chosen in the step shown, or null. */
    get chosen() { return panels.chosen; },
    setLarge: (on) => large.set(on),
    setPace: (name) => player.setPace(name),
    select: (node) => panels.select(node),
    get step() { return player.step; },
    /** Whether steps follow one another by themselves. */
    get playing() { return player.playing; },
    get model() { return model; },
    destroy() {
      player.stop();
      clearTimeout(waiting);
      announcer.stop();
      panels.destroy();
      unfollow();
      unwatch();
      large.forget();
      unkey();
      root.remove();
    },
  };
  note.hidden = true;
  around();
  return view;
}

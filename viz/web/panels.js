// The panels of one run (tree, text, timeline, inspector; tracks, sources and exhibits where a run has them), drawn
// together for one step and linked by hover and selection.
/** @import { NodeRef } from "./types.d.ts" */
/** @import { Glossary, Model } from "./view-types.d.ts" */
import { el, setAttributes, svgEl, writeText } from "./base.js";
import { makeCamera } from "./camera.js";
import { exhibitCard } from "./exhibits.js";
import { fly } from "./flight.js";
import { icicleDrawing } from "./icicle.js";
import { makeInspector } from "./inspector.js";
import { output, pictureOf } from "./picture.js";
import { nodeName, stepSentence, tellingNode } from "./step-words.js";
import { makeSources } from "./sources.js";
import { makeTimeline } from "./timeline.js";
import { makeTracks } from "./tracks.js";
import { treeDrawing, waiting } from "./tree.js";
import { hearNodes } from "./tree-hand.js";
import { visible } from "./words.js";

/** name("tree") gives the attributes {id} or {class} under which the page contract knows a panel. */
const panelName = (ids, word) => (ids ? { id: word, class: `ds-${word}` } : { class: `ds-${word} ${word}` });

/**
 * options: ids, onSelect, onSeek(step), above, below(): px of the canvas that stay free for words and legend, brief: a
 * small canvas, a short inspector and folded exhibits. With brief, the caller scrolls the text (newest, strip.scroll),
 * so that several runs are drawn before the layout is read. Returns the elements and {reset, grow,
 * draw(index, stage, verdicts), rest(still), select(node), setMode(mode), camera, destroy}. mode: "tree" | "icicle".
 * @param {Model} model
 * @param {Glossary} glossary
 * @param {any} options
 */
export function makePanels(model, glossary, options) {
  const tree = el("div", panelName(options.ids, "tree"));
  const text = el("div", panelName(options.ids, "text"));
  const timeline = el("div", panelName(options.ids, "timeline"));
  const inspector = el("div",
    { ...panelName(options.ids, "inspector"), role: "group", "aria-label": "Chosen token", tabindex: 0 });
  tree.setAttribute("data-state", "idle");

  const treeStage = svgEl("g", {});
  const icicleStage = svgEl("g", { display: "none", transform: `translate(0 ${options.above || 0})` });
  const svg = svgEl("svg", { class: "ds-canvas", role: "group", "aria-label": "Draft tree" }, treeStage, icicleStage);
  const note = el("p", { class: "ds-quiet ds-icicle-note", hidden: true });
  tree.append(svg, note);
  const sources = makeSources(repaint), tracks = makeTracks(), exhibits = exhibitCard({ fold: options.brief });
  const hooks = {
    sources,
    name: (step, node, waits) => nodeName(step, node, rootPiece, waits) +
      (sources.merged && node >= 0 ? `, from ${sources.nameOf(step, node)}` : ""),
  };
  const limits = options.brief ? { least: 1, usual: 1, most: 1.1, turns: false }
    : { get least() { return tree.closest("[data-large]") ? 1.35 : 1; }, usual: 1.3, most: 1.8, turns: true };
  const { above = 0, below = () => 0 } = options;
  const drawing = treeDrawing(treeStage, hooks, limits), icicle = icicleDrawing(icicleStage, hooks);
  const camera = makeCamera(svg, treeStage, { above, moved: (at) => drawing.pin(at) });
  const inspect = makeInspector(inspector, glossary, options.brief);
  let mode = "tree", field = "p", shown = -1, stage = null, chosen = null, rootPiece = "";
  let size = { width: 0, height: 0 };
  let selectedElement = null, hoveredElement = null, spoken = null, told = 0, waits = (_node) => false, land = () => {};

  const strip = output(text, {
    onPick(index) {
      const at = model.stepOfIndex(index);
      options.onSeek(at);
      select(model.outputNode(model.steps[at], index - model.steps[at].view.firstIndex));
      hover({ index, step: at });
    },
    onHover: (index) => hover(index === null ? {} : { index, step: model.stepOfIndex(index) }),
  });
  const line = (options.timeline || makeTimeline)(timeline,
    { onSeek: options.onSeek, onHover: (step) => hover(step === null ? {} : { step }) });

  hearNodes(svg, {
    select,
    hover: (node) => hover(node === undefined ? {} : { node, index: indexOf(node), step: shown }),
    toggle(parent) {
      drawing.toggle(parent);
      repaint();
      const fold = drawing.fold(parent);
      if (fold) fold.focus();
    },
    reach(node) {
      camera.reveal(...drawing.at(node));
      element(node).focus();
    },
  });

  /** Draw the same step again, because another source or another view was chosen. */
  function repaint() {
    const step = model.steps[shown];
    if (!step) return;
    picture(step);
    mark();
  }

  function picture(step) {
    if (mode === "tree") return camera.frame(drawing.draw(step, rootPiece, waits));
    const by = stage === "draft" ? "q" : field;                // p is not known before the target's pass
    icicle.draw(step, rootPiece, by, size, waits);
    writeText(note, `Width is the probability of the whole path, by ` +
      `${by === "p" ? "p, the target’s" : "q, the draft’s"}. Empty room: other tokens.`);
  }

  const element = (node) => (mode === "tree" ? drawing : icicle).element(node);

  /** Index in the text of a node that was kept, else null. */
  function indexOf(node) {
    const step = model.steps[shown];
    if (!step) return null;
    if (node === "final") return step.view.final ? step.view.firstIndex + step.view.tokens - 1 : null;
    const at = step.view.path.indexOf(node);
    return at >= 0 && at < step.view.tokens ? step.view.firstIndex + at : null;
  }

  /** @param {{ node?: NodeRef, index?: number | null, step?: number | null }} place */
  function hover({ node, index = null, step = null }) {
    // the timeline means all tokens of a step
    const whole = index === null && node === undefined ? model.steps[step] : null;
    if (whole) strip.hover(whole.view.firstIndex, whole.view.tokens); else strip.hover(index, 1);
    line.hover(step);
    if (hoveredElement) hoveredElement.removeAttribute("data-hover");
    if (node === undefined && index !== null && step === shown)
      node = model.outputNode(model.steps[step], index - model.steps[step].view.firstIndex);
    hoveredElement = node === undefined || node === null ? null : element(node);
    if (hoveredElement) hoveredElement.setAttribute("data-hover", "");
  }

  function select(node) {
    chosen = node;
    if (mode === "tree" && drawing.unfold(node)) repaint(); else mark();
    if (options.onSelect && node !== null) options.onSelect({ step: shown, node, index: indexOf(node) });
  }

  /** Show the state before the first step: only the prompt. */
  function blank() {
    shown = -1; stage = null;
    land();
    drawing.clear(); icicleStage.firstChild.replaceChildren();
    strip.draw(model, 0, -1);
    line.draw(model, -1); tracks.draw(-1); exhibits.draw(null);
    inspect.clear("");
  }

  /** Whether the step is being played and some of its verdicts are not shown yet. */
  const open = () => stage === "draft" || stage === "judge";

  const exists = (step, node) => (node === "final" ? Boolean(step.view.final) : node !== null
    && node < step.view.count);

  /**
   * The node to explain: the chosen one; otherwise the node judged last, and after the last verdict the most telling
   * one.
   */
  function subject(step) {
    if (exists(step, chosen)) return chosen;
    if (stage === "draft") return null;
    if (stage !== "judge" || !step.judgements.length) return tellingNode(step);
    return told ? step.judgements[told - 1].node : null;
  }

  /** Ring the subject and explain it, as far as its verdict has been shown. */
  function mark() {
    const step = model.steps[shown];
    if (selectedElement) setAttributes(selectedElement, { "data-selected": null, tabindex: -1, "aria-pressed": null });
    if (!step) return;
    const node = subject(step);
    selectedElement = element(node === null ? -1 : node);      // without a subject the keyboard still finds the root
    if (selectedElement) setAttributes(selectedElement,
      { "data-selected": node !== null, tabindex: 0, "aria-pressed": node === null ? null : "true" });
    if (node === null) drawing.unmark(); else (mode === "tree" ? drawing : icicle).mark(node);
    const unknown = node === "final" ? open() : node !== -1 && (node === null || waits(node));
    if (unknown) inspect.propose(step, typeof node === "number" ? node : null);
    else inspect.draw(step, node, rootPiece, open());
  }

  const watcher = new ResizeObserver(() => {
    const { width, height } = svg.getBoundingClientRect(), high = svg.clientHeight || Math.round(height);
    size = { width: svg.clientWidth || Math.round(width), height: high - above - below() };
    if (!size.width) return;
    camera.resize(size.width, high, size.height);
    drawing.resize(size.width, size.height);
    drawing.grow(model);
    repaint();
  });
  watcher.observe(svg);
  /** The scroll position at which the last token of the text is in view. */
  const newest = () => strip.newest();
  const reader = new ResizeObserver(() => strip.scroll(newest()));
  reader.observe(text);

  return {
    tree, text, timeline, inspector, svg, camera, select, line, strip, sources: sources.element, tracks: tracks.element,
    exhibits: exhibits.element,
    rest: (still) => exhibits.rest(still),
    newest,
    get shown() { return shown; },
    get chosen() { return chosen; },
    get mode() { return mode; },
    reset() {
      shown = -1; chosen = null; spoken = null; selectedElement = null;
      hoveredElement = null;
      for (const part of [drawing, line, sources, tracks, exhibits]) part.reset();
      strip.reset(model.run);
      camera.fit(false);
      inspect.clear("");
      blank();
    },
    blank,
    grow() {
      if (model.run && spoken !== model.run) { spoken = model.run; strip.reset(model.run); }
      if (size.width) drawing.grow(model);
      for (const part of [line, sources, tracks, exhibits]) part.grow(model);
    },
    /** upTo: the last step whose tokens the text has. */
    draw(index, nowStage, verdicts, upTo = index) {
      const step = model.steps[index];
      if (!step) return;
      if (index !== shown) { chosen = null; hover({}); }
      if (index !== shown || nowStage !== "commit") land();
      const landing = nowStage === "commit" && (index !== shown || stage !== "commit");
      shown = index; stage = nowStage; told = verdicts;
      waits = waiting(step, stage, verdicts);
      rootPiece = model.rootPiece(index);
      setAttributes(svg, { "data-stage": stage, "aria-label": `Draft tree of step ` +
        `${index + 1}${open() ? "" : `: ${stepSentence(step)}`}` });
      picture(step);
      strip.draw(model, open() ? index : upTo + 1, index);
      line.draw(model, index); tracks.draw(index); exhibits.draw(step);
      mark();
      if (!options.brief) strip.scroll(newest());
      if (landing && options.flights && !pictureOf(model.run)) {   // words slide, patches appear
        const base = step.view.firstIndex;
        land = fly(options.flights,
          step.output.pieces.map((_, j) => [element(model.outputNode(step, j)), strip.element(base + j),
            visible(model.outputFace(step, j)), model.outputStatus(step, j), model.outputLook(step, j)]));
      }
    },
    setMode(next, nextField) {
      mode = next; field = nextField || field;
      setAttributes(treeStage, { display: mode === "tree" ? null : "none" });
      setAttributes(icicleStage, { display: mode === "icicle" ? null : "none" });
      note.hidden = mode !== "icicle";
      repaint();
    },
    destroy() { land(); exhibits.stop(); watcher.disconnect(); reader.disconnect(); },
  };
}

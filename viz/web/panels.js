// The panels of one run (tree, text, timeline, inspector; tracks, sources and exhibits where a run has them), drawn together for one step and
// linked by hover and selection.
(function (D) {
  "use strict";

  /** name("tree") gives the attributes {id} or {class} under which the page contract knows a panel. */
  D.panelName = (ids, word) => (ids ? { id: word, class: `ds-${word}` } : { class: `ds-${word} ${word}` });

  /**
   * options: ids, onSelect, onSeek(step), brief: a small canvas, a short inspector and folded exhibits. With brief, the
   * caller scrolls the text (strip.newest, strip.scroll), so that several runs are drawn before the layout is read.
   * Returns the elements and {reset, grow, draw(index, stage, verdicts), rest(still), select(node), setMode(mode),
   * camera, destroy}. mode: "tree" | "icicle".
   */
  D.panels = function (model, glossary, options) {
    const tree = D.el("div", D.panelName(options.ids, "tree"));
    const text = D.el("div", D.panelName(options.ids, "text"));
    const timeline = D.el("div", D.panelName(options.ids, "timeline"));
    const inspector = D.el("div", { ...D.panelName(options.ids, "inspector"), role: "group", "aria-label": "Chosen token", tabindex: 0 });
    tree.setAttribute("data-state", "idle");

    const treeStage = D.svg("g", {}), icicleStage = D.svg("g", { display: "none" });
    const svg = D.svg("svg", { class: "ds-canvas", role: "group", "aria-label": "Draft tree" }, treeStage, icicleStage);
    const note = D.el("p", { class: "ds-quiet ds-icicle-note", hidden: true });
    tree.append(svg, note);
    const sources = D.sources(repaint), tracks = D.tracks(), exhibits = D.exhibitCard({ fold: options.brief });
    const hooks = {
      sources,
      name: (step, node, waits) => D.nodeName(step, node, rootPiece, waits) + (sources.merged && node >= 0 ? `, from ${sources.nameOf(step, node)}` : ""),
    };
    const drawing = D.treeDrawing(treeStage, hooks, options.brief), icicle = D.icicleDrawing(icicleStage, hooks);
    const camera = D.camera(svg, treeStage, options.brief);
    const inspect = D.inspector(inspector, glossary, options.brief);
    let mode = "tree", field = "p", shown = -1, stage = null, chosen = null, rootPiece = "", size = { width: 0, height: 0 };
    let selectedElement = null, hoveredElement = null, spoken = null, told = 0, waits = () => false, land = () => {};

    const strip = D.output(text, {
      onPick(index) {
        const at = model.stepOfIndex(index);
        options.onSeek(at);
        select(model.outputNode(model.steps[at], index - model.steps[at].view.firstIndex));
        hover({ index, step: at });
      },
      onHover: (index) => hover(index === null ? {} : { index, step: model.stepOfIndex(index) }),
    });
    const line = (options.timeline || D.timeline)(timeline, { onSeek: options.onSeek, onHover: (step) => hover(step === null ? {} : { step }) });

    const nodeOf = (element) => {
      const g = element && element.closest ? element.closest("[data-node],[data-root],[data-final]") : null;
      if (!g || !svg.contains(g)) return undefined;
      return g.hasAttribute("data-node") ? Number(g.getAttribute("data-node")) : g.hasAttribute("data-root") ? -1 : "final";
    };
    svg.addEventListener("click", (event) => { const node = nodeOf(event.target); if (node !== undefined) select(node); });
    svg.addEventListener("focusin", (event) => { const node = nodeOf(event.target); if (node !== undefined && event.target.matches(":focus-visible")) select(node); });
    svg.addEventListener("pointerover", (event) => { const node = nodeOf(event.target); hover(node === undefined ? {} : { node, index: indexOf(node), step: shown }); });
    svg.addEventListener("pointerleave", () => hover({}));
    svg.addEventListener("keydown", (event) => {
      if (event.key !== "ArrowDown" && event.key !== "ArrowUp" && event.key !== "Enter") return;
      const node = nodeOf(event.target);
      if (node === undefined) return;
      event.preventDefault();
      if (event.key === "Enter") return select(node);
      const all = [...svg.querySelectorAll("[data-node],[data-root],[data-final]")].filter((g) => g.getClientRects().length)
        .map((g) => [g, g.getBoundingClientRect()]).sort((a, b) => a[1].left - b[1].left || a[1].top - b[1].top).map(([g]) => g);
      const next = all[all.indexOf(event.target.closest(".ds-node")) + (event.key === "ArrowDown" ? 1 : -1)];
      if (!next) return;
      const to = nodeOf(next);
      select(to);
      camera.reveal(...drawing.at(to));
      element(to).focus();
    });

    /** Draw the same step again, because another source or another view was chosen. */
    function repaint() {
      const step = model.steps[shown];
      if (!step) return;
      picture(step);
      mark();
    }

    function picture(step) {
      if (mode === "tree") return camera.frame(drawing.draw(step, rootPiece, size.width / size.height, waits));
      const by = stage === "draft" ? "q" : field;                // p is not known before the target's pass
      icicle.draw(step, rootPiece, by, size, waits);
      D.write(note, `Width is the probability of the whole path, by ${by === "p" ? "p, the target’s" : "q, the draft’s"}. Empty room: other tokens.`);
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

    function hover({ node, index = null, step = null }) {
      const whole = index === null && node === undefined ? model.steps[step] : null;   // the timeline means all tokens of a step
      if (whole) strip.hover(whole.view.firstIndex, whole.view.tokens); else strip.hover(index, 1);
      line.hover(step);
      if (hoveredElement) hoveredElement.removeAttribute("data-hover");
      if (node === undefined && index !== null && step === shown) node = model.outputNode(model.steps[step], index - model.steps[step].view.firstIndex);
      hoveredElement = node === undefined || node === null ? null : element(node);
      if (hoveredElement) hoveredElement.setAttribute("data-hover", "");
    }

    function select(node) {
      chosen = node;
      mark();
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

    const exists = (step, node) => (node === "final" ? Boolean(step.view.final) : node !== null && node < step.view.count);

    /** The node to explain: the chosen one; otherwise the node judged last, and after the last verdict the most telling one. */
    function subject(step) {
      if (exists(step, chosen)) return chosen;
      if (stage === "draft") return null;
      if (stage !== "judge" || !step.judgements.length) return D.tellingNode(step);
      return told ? step.judgements[told - 1].node : null;
    }

    /** Ring the subject and explain it, as far as its verdict has been shown. */
    function mark() {
      const step = model.steps[shown];
      if (selectedElement) D.set(selectedElement, { "data-selected": null, tabindex: -1, "aria-pressed": null });
      if (!step) return;
      const node = subject(step);
      selectedElement = element(node === null ? -1 : node);      // without a subject the keyboard still finds the root
      if (selectedElement) D.set(selectedElement, { "data-selected": node !== null, tabindex: 0, "aria-pressed": node === null ? null : "true" });
      if (node === null) drawing.unmark(); else (mode === "tree" ? drawing : icicle).mark(node);
      const unknown = node === "final" ? open() : node !== -1 && (node === null || waits(node));
      if (unknown) inspect.propose(step, typeof node === "number" ? node : null); else inspect.draw(step, node, rootPiece, open());
    }

    const watcher = new ResizeObserver(() => {
      size = { width: svg.clientWidth || Math.round(svg.getBoundingClientRect().width), height: svg.clientHeight || Math.round(svg.getBoundingClientRect().height) };
      if (!size.width) return;
      camera.resize(size.width, size.height);
      if (mode === "icicle") repaint();
    });
    watcher.observe(svg);
    const reader = new ResizeObserver(() => strip.scroll(strip.newest()));
    reader.observe(text);

    return {
      tree, text, timeline, inspector, svg, camera, select, line, strip, sources: sources.element, tracks: tracks.element, exhibits: exhibits.element,
      rest: (still) => exhibits.rest(still),
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
        for (const part of [line, sources, tracks, exhibits]) part.grow(model);
      },
      draw(index, nowStage, verdicts) {
        const step = model.steps[index];
        if (!step) return;
        if (index !== shown) { chosen = null; hover({}); }
        if (index !== shown || nowStage !== "commit") land();
        const landing = nowStage === "commit" && (index !== shown || stage !== "commit");
        shown = index; stage = nowStage; told = verdicts;
        waits = D.waiting(step, stage, verdicts);
        rootPiece = model.rootPiece(index);
        D.set(svg, { "data-stage": stage, "aria-label": `Draft tree of step ${index + 1}${open() ? "" : `: ${D.stepSentence(step)}`}` });
        picture(step);
        strip.draw(model, open() ? index : index + 1, index);
        line.draw(model, index); tracks.draw(index); exhibits.draw(step);
        mark();
        if (!options.brief) strip.scroll(strip.newest());
        if (landing && options.flights && !D.pictureOf(model.run)) {   // words slide, patches appear
          const base = step.view.firstIndex;
          land = D.fly(options.flights, step.output.pieces.map((_, j) => [element(model.outputNode(step, j)), strip.element(base + j), D.visible(model.outputFace(step, j)), model.outputStatus(step, j), model.outputLook(step, j)]));
        }
      },
      setMode(next, nextField) {
        mode = next; field = nextField || field;
        D.set(treeStage, { display: mode === "tree" ? null : "none" });
        D.set(icicleStage, { display: mode === "icicle" ? null : "none" });
        note.hidden = mode !== "icicle";
        repaint();
      },
      destroy() { land(); exhibits.stop(); watcher.disconnect(); reader.disconnect(); },
    };
  };
})(globalThis.Draftscope);

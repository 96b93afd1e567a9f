// Draws the draft tree of one step as chips joined by edges; elements are reused from step to step.
/** @import { Step } from "./types.d.ts" */
/** @import { Stage } from "./view-types.d.ts" */
import { attributeKeeper, svgEl } from "./base.js";
import { chipSize, makeChip } from "./chip.js";
import { makeCurtain } from "./curtain.js";
import { patchOf } from "./picture.js";
import { EDGE, treeReach } from "./tree-reach.js";
import { plural } from "./words.js";

/** From a chip to one of the next depth; down: below it, else to the right of it. */
const edgePath = (x0, y0, x1, y1, down) => {
  const bend = down ? (y1 - y0) * 0.5 : Math.max(12, (x1 - x0) * 0.5), at = (x, y) => `${x.toFixed(1)} ${y.toFixed(1)}`;
  return `M${at(x0, y0)}C${down ? at(x0, y0 + bend) : at(x0 + bend, y0)} ` +
    `${down ? at(x1, y1 - bend) : at(x1 - bend, y1)} ${at(x1, y1)}`;
};

/**
 * A function that tells whether a node still waits for its verdict. stage: draft | judge | commit | null; verdicts: how
 * many of the judgements "judge" has shown. Nodes that are never judged wait for the last of them.
 * @type {(step: Step, stage: Stage, verdicts: number) => (node: number) => boolean}
 */
export function waiting(step, stage, verdicts) {
  if (stage === "draft") return () => true;
  if (stage !== "judge" || verdicts >= step.judgements.length) return () => false;
  return (node) => { const own = step.view.judged.get(node); return !own || own[own.length - 1].order >= verdicts; };
}

/**
 * hooks: name(step, node, waits), sources (of sources.js). limits: of the scale, see tree-reach.js.
 * @param {any} stage
 * @param {any} hooks
 * @param {{ least: number, usual: number, most: number, turns: boolean }} limits
 */
export function treeDrawing(stage, hooks, limits) {
  const edges = svgEl("g", { class: "ds-edges" }), trail = svgEl("path", { class: "ds-trail", pathLength: 1 });
  const chips = svgEl("g", { class: "ds-chips" }), curtain = makeCurtain();
  stage.append(edges, trail, chips);
  const pool = [], lines = [], folds = [], foldLines = [];
  const root = makeChip({ "data-root": "", role: "button", tabindex: -1 });
  const last = makeChip({ "data-final": "bonus", role: "button", tabindex: -1 });
  const halo = svgEl("path", { class: "ds-halo" });
  const lastLine = edge();
  const reach = treeReach(limits);
  let place = null, shown = null, used = 0, pinned = 0;

  /** The run's extents, and where this step's walk ends: that place stays visible where not everything does. */
  const box = () => ({ ...reach.box(place), focus: end(place.x), level: end(place.y) });

  /**
   * The distance between an edge's end and the middle of its chip. Edges end beneath judged chips, which are smaller
   * before the verdict.
   */
  const offMiddle = (i) => (i < used && !place.sizes[i].small ? 0.2 : 0.5) * place.sizes[i][reach.down ? "h" : "w"];

  /** Where the walk ends (at: x or y by node). */
  function end(at) {
    const { view } = shown, i = view.final ? view.count : view.path[view.path.length - 1];
    return i === undefined ? 0 : at[i];
  }

  function edge() {
    const path = svgEl("path", { class: "ds-edge" });
    return { path, d: "", set: attributeKeeper(path) };
  }

  function chipOf(i) {
    if (!pool[i]) {
      pool[i] = makeChip({ "data-node": i, role: "button", tabindex: -1 });
      lines[i] = edge();
    }
    return pool[i];
  }

  function foldOf(k) {
    if (!folds[k]) {
      folds[k] = makeChip({ role: "button", tabindex: 0 });
      foldLines[k] = edge();
    }
    return folds[k];
  }

  function pathTo(i) {
    const from = place.parent[i], [x, y] = from < 0 ? [0, 0] : [place.x[from], place.y[from]];
    const out = from < 0 ? place.half : offMiddle(from), into = offMiddle(i);
    return reach.down ? edgePath(x, y + out, place.x[i], place.y[i] - into, true)
      : edgePath(x + out, y, place.x[i] - into, place.y[i], false);
  }

  function link(line, i, status, q) {
    line.d = pathTo(i);
    line.set("d", line.d);
    line.set("data-status", status);
    line.set("stroke-width", q === null ? "1.5" : (1 + 7 * q).toFixed(1));
    if (!line.path.isConnected) edges.append(line.path);
  }

  function stand(chip, i, piece) {
    chip.set("transform", `translate(${place.x[i].toFixed(1)} ${place.y[i].toFixed(1)})`);
    chip.set("data-token-text", piece);
  }

  /** Give every node the look of its status, or of a token that waits for its verdict. */
  function dress(waits) {
    const { nodes } = shown, deepest = Math.max(1, ...place.depth.filter(Boolean)), { merged } = hooks.sources;
    for (let i = 0; i < used; i++) {
      const chip = pool[i], open = waits(i), look = open ? "drafted" : nodes.status[i];
      chip.set("aria-label", hooks.name(shown, i, open));
      if (!place.shown[i]) { chip.mark(null); chip.hide(nodes.status[i], look); continue; }
      chip.draw(open ? chipSize(place.pieces[i], "ignored", patchOf(shown.view.run, nodes.token[i]))
        : place.sizes[i], nodes.status[i], look);
      chip.note(open ? "" : place.notes[i]);
      markSource(i, merged);
      lines[i].set("data-look", open ? look : null);
      if (!open) continue;
      for (const element of [chip.g, lines[i].path])
        element.style.setProperty("--depth", (place.depth[i] / deepest).toFixed(2));
    }
  }

  /** Mark a node with its source, and dim it if another source is chosen; not merged: remove both. */
  function markSource(i, merged) {
    const dim = merged && hooks.sources.dims(shown, i) ? "" : null;
    pool[i].mark(merged ? hooks.sources.of(shown, i) : null);
    pool[i].set("data-dim", dim);
    lines[i].set("data-dim", dim);
  }

  /** The folds of a step: "+9" opens, "−" closes again. */
  function drawFolds() {
    place.folds.forEach(({ parent, count, at }, k) => {
      const chip = foldOf(k);
      chip.draw(place.sizes[at], "ignored");
      stand(chip, at, "");
      chip.set("data-fold", parent);
      chip.set("aria-expanded", String(!count));
      chip.set("aria-label", count ? `${plural(count, "more guess", "more guesses")} here: show` : "Show fewer");
      link(foldLines[k], at, "ignored", null);
      if (!chip.g.isConnected) chips.append(chip.g);
    });
    for (let k = place.folds.length; k < folds.length; k++) { folds[k].g.remove(); foldLines[k].path.remove(); }
  }

  return {
    g: stage,
    /** Forget the previous run. */
    reset() { reach.reset(); shown = null; },
    /** Empty the canvas. */
    clear() {
      for (const one of [chips, edges]) one.replaceChildren();
      trail.removeAttribute("d");
      used = 0; shown = null;
    },
    resize(width, height) { reach.resize(width, height); shown = null; },
    grow: reach.grow,
    /**
     * Draws; waits(node): its verdict is not shown yet. Returns the box to frame, with the scale.
     */
    draw(step, rootPiece, waits = () => false) {
      if (step === shown && reach.holds(step, place)) { dress(waits); return box(); }
      shown = step;
      const { nodes, view } = step;
      place = reach.of(step, rootPiece);
      const before = used;
      used = view.count;
      for (let i = 0; i < view.count; i++) {
        const chip = chipOf(i);
        chip.set("data-token-text", nodes.piece[i]);
        if (place.shown[i]) { stand(chip, i, nodes.piece[i]); link(lines[i], i, nodes.status[i], nodes.q[i]); }
          else lines[i].path.remove();
        if (i >= before) chips.append(chip.g);
      }
      for (let i = used; i < before; i++) { pool[i].g.remove(); lines[i].path.remove(); }
      dress(waits);
      drawFolds();
      root.draw(place.root, "root");
      root.set("data-token-text", rootPiece);
      root.set("aria-label", hooks.name(step, -1));
      if (view.final) {
        const i = view.count;
        last.draw(place.sizes[i], view.final.kind, view.final.look);
        last.note(place.notes[i]);
        stand(last, i, view.final.piece);
        last.set("aria-label", hooks.name(step, "final"));
        last.set("data-final", view.final.kind);
        link(lastLine, i, view.final.kind, null);
        lastLine.set("data-look", view.final.look === view.final.kind ? null : view.final.look);
        chips.append(last.g);
      } else { last.g.remove(); lastLine.path.remove(); }
      chips.append(curtain.g, root.g);
      trail.setAttribute("d", view.path.map((i) => lines[i].d).join(""));
      return box();
    },
    /** The camera stands here: the root stays at the left edge of what is seen, or the upper one, below the tools. */
    pin({ k, x, y, above }) {
      if (!place) return;
      const { down } = reach, { half } = place, from = (down ? above - y : -x) / k;
      pinned = Math.max(0, from + EDGE / 2 + half);
      root.set("transform", down ? `translate(0 ${pinned.toFixed(1)})` : `translate(${pinned.toFixed(1)} 0)`);
      curtain.g.toggleAttribute("hidden", !pinned);
      if (pinned) curtain.draw(from - (down ? above / k : EDGE), pinned + half + EDGE / 2, down);
    },
    toggle(parent) { reach.toggle(shown, parent); },
    /** Open the folds that hide this node. Returns whether there were any. */
    unfold(node) {
      if (!shown || typeof node !== "number" || node < 0 || place.shown[node] !== false) return false;
      reach.unfold(shown, node);
      return true;
    },
    /** Put the ring around the chosen node. */
    mark(node) {
      const chip = node === "final" ? last : node === -1 ? root : pool[node];
      halo.setAttribute("d", chip.halo);
      chip.g.prepend(halo);
    },
    unmark() { halo.remove(); },
    /** The <g> of a node ("final", -1 for the root). */
    element(node) { return node === "final" ? last.g : node === -1 ? root.g : pool[node] ? pool[node].g : null; },
    /** The <g> of the fold below this parent. */
    fold(parent) { return chips.querySelector(`[data-fold="${parent}"]`); },
    at(node) {
      if (!place) return [0, 0];
      const i = node === "final" ? shown.view.count : node;
      return i < 0 ? (reach.down ? [0, pinned] : [pinned, 0]) : [place.x[i], place.y[i]];
    },
  };
}

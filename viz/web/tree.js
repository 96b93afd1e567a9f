// Draws the draft tree of one step as chips joined by edges; elements are reused from step to step.
/** @import { Step } from "./types.d.ts" */
/** @import { Stage } from "./view-types.d.ts" */
import { attributeKeeper, clamp, svgEl } from "./base.js";
import { chipSize, crowdOf, makeChip } from "./chip.js";
import { patchOf } from "./picture.js";
import { placeTree } from "./tree-places.js";

const SPARE = 1.3;

const edgePath = (x0, y0, x1, y1) => {
  const bend = Math.max(12, (x1 - x0) * 0.5);
  return `M${x0} ${y0.toFixed(1)}C${x0 + bend} ${y0.toFixed(1)} ${x1 - bend} ${y1.toFixed(1)} ${x1} ${y1.toFixed(1)}`;
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
 * hooks: name(step, node, waits), sources (of sources.js). small: a small canvas, which draws crowded ignored tokens as
 * dots.
 * @param {any} stage
 * @param {any} hooks
 * @param {boolean} [small]
 */
export function treeDrawing(stage, hooks, small) {
  const edges = svgEl("g", { class: "ds-edges" }), trail = svgEl("path", { class: "ds-trail", pathLength: 1 });
  const chips = svgEl("g", { class: "ds-chips" });
  stage.append(edges, trail, chips);
  const pool = [], lines = [];
  const root = makeChip({ "data-root": "", role: "button", tabindex: -1 });
  const last = makeChip({ "data-final": "bonus", role: "button", tabindex: -1 });
  const halo = svgEl("path", { class: "ds-halo" });
  const lastLine = edge(), twigs = edge();         // twigs: the edges of all dots in one path
  twigs.set("data-status", "ignored"); twigs.set("stroke-width", "1.5");
  let reach = null, room = null, place = null, shown = null, used = 0;
  const box = () =>
    ({ left: -reach.root / 2 - 12, right: room.right + 12, top: room.top - 12, bottom: room.bottom + 12,
      focus: end(place.x), level: end(place.y) });

  /**
   * The distance between an edge's end and the middle of its chip. Edges end beneath judged chips, which are smaller
   * before the verdict.
   */
  const offMiddle = (i) => (i < used && !place.sizes[i].small ? 0.2 : 0.5) * place.sizes[i].w;

  /** Where the walk ends (at: x or y by node). This place stays visible when the whole tree does not fit. */
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

  /**
   * Keep a similar scale throughout a run: reserve the room of the widest tree so far, but leave small trees legible.
   */
  function stretch(aspect) {
    reach.top = Math.min(reach.top, place.top); reach.bottom = Math.max(reach.bottom, place.bottom);
    reach.root = Math.max(reach.root, place.root.w); reach.right = Math.max(reach.right, place.right);
    room = {
      right: Math.min(reach.right, place.right * SPARE),
      top: Math.max(reach.top, place.top * SPARE), bottom: Math.min(reach.bottom, place.bottom * SPARE),
    };
    // a tall tree leaves room at its sides, into which the columns spread
    const spread = clamp(((room.bottom - room.top + 24) * (aspect || 1.5) - place.root.w / 2 - 24) / room.right, 1, 2);
    room.right *= spread;
    place.x = place.depth.map((d) => place.middles[d] * spread);
  }

  function pathTo(i) {
    const from = place.parent[i], x0 = from < 0 ? place.root.w / 2 : place.x[from] + offMiddle(from);
    return edgePath(x0, from < 0 ? 0 : place.y[from], place.x[i] - offMiddle(i), place.y[i]);
  }

  function link(line, i, status, q) {
    line.d = pathTo(i);
    line.set("d", line.d);
    line.set("data-status", status);
    line.set("stroke-width", q === null ? "1.5" : (1 + 7 * q).toFixed(1));
  }

  function stand(chip, i, piece) {
    chip.set("transform", `translate(${place.x[i].toFixed(1)} ${place.y[i].toFixed(1)})`);
    chip.set("data-token-text", piece);
  }

  /** Give every node the look of its status, or of a token that waits for its verdict. */
  function dress(waits) {
    const { nodes } = shown, deepest = Math.max(1, ...place.depth), { merged } = hooks.sources;
    for (let i = 0; i < used; i++) {
      const chip = pool[i], open = waits(i), look = open ? "drafted" : nodes.status[i];
      chip.draw(open ? chipSize(place.pieces[i], "ignored", reach.crowd, patchOf(shown.view.run, nodes.token[i]))
        : place.sizes[i], nodes.status[i], look);
      chip.set("aria-label", hooks.name(shown, i, open));
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

  return {
    g: stage,
    /** Forget the extents of the previous run. */
    reset() { reach = null; shown = null; },
    /** Empty the canvas. */
    clear() { chips.replaceChildren(); edges.replaceChildren(); trail.removeAttribute("d"); used = 0; shown = null; },
    /**
     * Draws; aspect: width / height of the canvas; waits(node): its verdict is not shown yet. Returns the box to frame.
     */
    draw(step, rootPiece, aspect, waits = () => false) {
      if (step === shown) { dress(waits); return box(); }
      shown = step;
      const { nodes, view } = step;
      if (!reach) reach = { top: 0, bottom: 0, right: 0, root: 0, crowd: 0 };
      reach.crowd = Math.max(reach.crowd, crowdOf(view.count, small));
      place = placeTree(step, rootPiece, reach.crowd);
      stretch(aspect);
      const before = used;
      let thin = "";
      used = view.count;
      for (let i = 0; i < view.count; i++) {
        const chip = chipOf(i), line = lines[i], status = nodes.status[i], dot = place.sizes[i].dot;
        stand(chip, i, nodes.piece[i]);
        if (dot) { thin += pathTo(i); line.path.remove(); }
          else { link(line, i, status, nodes.q[i]); if (!line.path.isConnected) edges.append(line.path); }
        if (i >= before) chips.append(chip.g);
      }
      for (let i = used; i < before; i++) { pool[i].g.remove(); lines[i].path.remove(); }
      dress(waits);
      twigs.set("d", thin || null);
      if (!twigs.path.isConnected) edges.prepend(twigs.path);
      root.draw(place.root, "root");
      if (!root.g.isConnected) chips.prepend(root.g);
      root.set("data-token-text", rootPiece);
      root.set("aria-label", hooks.name(step, -1));
      if (view.final) {
        const i = view.count;
        last.draw(place.sizes[i], view.final.kind, view.final.look);
        stand(last, i, view.final.piece);
        last.set("aria-label", hooks.name(step, "final"));
        last.set("data-final", view.final.kind);
        link(lastLine, i, view.final.kind, null);
        lastLine.set("data-look", view.final.look === view.final.kind ? null : view.final.look);
        chips.append(last.g); edges.append(lastLine.path);
      } else { last.g.remove(); lastLine.path.remove(); }
      trail.setAttribute("d", view.path.map((i) => lines[i].d).join(""));
      return box();
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
    at(node) {
      if (!place) return [0, 0];
      const i = node === "final" ? shown.view.count : node;
      return i < 0 ? [0, 0] : [place.x[i], place.y[i]];
    },
  };
}

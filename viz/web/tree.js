// Draws the draft tree of one step as chips joined by edges; elements are reused from step to step.
(function (D) {
  "use strict";
  const edgePath = (x0, y0, x1, y1) => {
    const bend = Math.max(12, (x1 - x0) * 0.5);
    return `M${x0} ${y0.toFixed(1)}C${x0 + bend} ${y0.toFixed(1)} ${x1 - bend} ${y1.toFixed(1)} ${x1} ${y1.toFixed(1)}`;
  };

  /** Where everything of a step stands. Node `count` is the final token; x is in columns, y in px; columns need `pitch` px. */
  D.placeTree = function (step, rootPiece, crowd) {
    const { nodes, view } = step, count = view.count;
    const pieces = D.mendTree(step, rootPiece);
    const sizes = nodes.piece.map((_, i) => D.chipSize(pieces[i], nodes.status[i], crowd));
    const depth = nodes.depth.slice(), parent = nodes.parent.slice();
    const children = new Map(view.children);
    if (view.final) {
      sizes.push(D.chipSize(pieces[count], view.final.kind));
      depth.push(view.final.parent < 0 ? 1 : nodes.depth[view.final.parent] + 1);
      parent.push(view.final.parent);
      children.set(view.final.parent, [...(children.get(view.final.parent) || []), count]);
    }
    const root = D.chipSize(pieces.root, "root");
    const heights = sizes.map((size) => size.h);
    heights.root = root.h;
    const { y, top, bottom } = D.layout(children, heights, D.CROWDS[crowd][2]);
    const pitch = Math.max(root.w, ...sizes.map((size) => size.w), 44) + 42;
    return { pieces, sizes, root, depth, parent, y, top, bottom, pitch, deepest: Math.max(1, ...depth) };
  };

  /** Pieces with split characters mended along each path; keys: node index, count (the final token), root. */
  D.mendTree = function (step, rootPiece) {
    const { nodes, view } = step, mended = nodes.piece.slice();
    mended.root = rootPiece;
    const split = (piece) => piece.startsWith("⟨");
    const along = (leaf, piece) => {
      const path = [];
      for (let i = leaf; i >= 0; i = nodes.parent[i]) path.unshift(nodes.piece[i]);
      const all = [rootPiece, ...path, ...(piece === undefined ? [] : [piece])];
      return D.mend(all)[all.length - 1];
    };
    for (let i = 0; i < view.count; i++) if (split(nodes.piece[i])) mended[i] = along(i) || nodes.piece[i];
    if (view.final) mended[view.count] = split(view.final.piece) ? along(view.final.parent, view.final.piece) || view.final.piece : view.final.piece;
    return mended;
  };

  /** In which order things light up while a step is played: judged nodes as they were judged, the rest last. */
  function turns(step) {
    const turn = new Array(step.view.count).fill(null);
    let next = 0;
    for (const judgement of step.judgements) if (turn[judgement.node] === null) turn[judgement.node] = next++;
    return turn.map((t) => (t === null ? next : t));
  }

  D.treeDrawing = function (stage, hooks) {
    const edges = D.svg("g", { class: "ds-edges" }), trail = D.svg("path", { class: "ds-trail", pathLength: 1 });
    const chips = D.svg("g", { class: "ds-chips" });
    stage.append(edges, trail, chips);
    const pool = [], lines = [];
    const root = D.chip({ "data-root": "", role: "button", tabindex: -1 });
    const last = D.chip({ "data-final": "bonus", role: "button", tabindex: -1 });
    const halo = D.svg("path", { class: "ds-halo" });
    const lastLine = D.svg("path", { class: "ds-edge" });
    let reach = null, place = null, shown = null, used = 0;
    const box = () => ({ left: -reach.root / 2 - 12, right: reach.deepest * reach.column + reach.last / 2 + 12, top: reach.top - 12, bottom: reach.bottom + 12 });

    function node(i) {
      if (!pool[i]) {
        pool[i] = D.chip({ "data-node": i, role: "button", tabindex: -1 });
        lines[i] = D.svg("path", { class: "ds-edge" });
      }
      return pool[i];
    }

    return {
      g: stage,
      /** Forget the extents of the former run. */
      reset() { reach = null; shown = null; },
      /** Nothing on the canvas. */
      clear() { chips.replaceChildren(); edges.replaceChildren(); trail.removeAttribute("d"); used = 0; shown = null; },
      /** Draws; aspect: width / height of the canvas; staged: the step will be played in stages. Returns the box that has been needed so far in this run, so that the camera does not jump. */
      draw(step, rootPiece, aspect, staged) {
        if (step === shown) return box();
        shown = step;
        const { nodes, view } = step;
        if (!reach) reach = { top: 0, bottom: 0, deepest: 1, pitch: 0, root: 0, last: 0, crowd: 0, column: 0 };
        reach.crowd = Math.max(reach.crowd, D.crowdOf(view.count));
        place = D.placeTree(step, rootPiece, reach.crowd);
        reach.top = Math.min(reach.top, place.top); reach.bottom = Math.max(reach.bottom, place.bottom);
        reach.pitch = Math.max(reach.pitch, place.pitch); reach.deepest = Math.max(reach.deepest, place.deepest);
        reach.root = Math.max(reach.root, place.root.w); reach.last = reach.pitch - 42;
        // a tall tree leaves room at the side: the columns spread into it
        const spread = ((reach.bottom - reach.top + 24) * (aspect || 1.5) - reach.pitch) / reach.deepest;
        reach.column = D.clamp(spread, reach.pitch, reach.pitch * 2);
        place.x = place.depth.map((d) => d * reach.column);
        const order = staged ? turns(step) : null;
        const delay = (element, i) => {
          element.style.setProperty("--turn", i < view.count ? order[i] : 0);
          element.style.setProperty("--depth", place.depth[i]);
        };
        const link = (line, i, status, q, p) => {
          const from = place.parent[i], x0 = from < 0 ? place.root.w / 2 : place.x[from] + place.sizes[from].w / 2;
          D.set(line, { d: edgePath(x0, from < 0 ? 0 : place.y[from], place.x[i] - place.sizes[i].w / 2, place.y[i]), "data-status": status, "data-q": q === null ? null : q });
          line.setAttribute("stroke-width", q === null ? "1.5" : (1 + 7 * q).toFixed(2));
          if (staged) delay(line, i);
        };
        for (let i = 0; i < view.count; i++) {
          const chip = node(i), status = nodes.status[i];
          chip.draw(place.sizes[i], status);
          D.set(chip.g, { transform: `translate(${place.x[i]} ${place.y[i].toFixed(1)})`, "data-token-text": nodes.piece[i], "aria-label": hooks.name(step, i) });
          if (staged) delay(chip.g, i);
          link(lines[i], i, status, nodes.q[i], nodes.p[i]);
          if (i >= used) { chips.append(chip.g); edges.append(lines[i]); }
        }
        for (let i = view.count; i < used; i++) { pool[i].g.remove(); lines[i].remove(); }
        used = view.count;
        root.draw(place.root, "root");
        if (!root.g.isConnected) chips.prepend(root.g);
        D.set(root.g, { "data-token-text": rootPiece, "aria-label": hooks.name(step, -1) });
        if (view.final) {
          const i = view.count;
          last.draw(place.sizes[i], view.final.kind);
          D.set(last.g, { transform: `translate(${place.x[i]} ${place.y[i].toFixed(1)})`, "data-final": view.final.kind, "data-token-text": view.final.piece, "aria-label": hooks.name(step, "final") });
          link(lastLine, i, view.final.kind, null, null);
          chips.append(last.g); edges.append(lastLine);
        } else { last.g.remove(); lastLine.remove(); }
        trail.setAttribute("d", view.path.map((i) => lines[i].getAttribute("d")).join(""));
        return box();
      },
      /** Put the ring around the chosen node. */
      mark(node) {
        const chip = node === "final" ? last : node === -1 ? root : pool[node];
        halo.setAttribute("d", chip.halo);
        chip.g.prepend(halo);
      },
      /** The <g> of a node ("final", -1 for the root). */
      element(node) { return node === "final" ? last.g : node === -1 ? root.g : pool[node] ? pool[node].g : null; },
      at(node) {
        if (!place) return [0, 0];
        const i = node === "final" ? shown.view.count : node;
        return i < 0 ? [0, 0] : [place.x[i], place.y[i]];
      },
    };
  };
})(globalThis.Draftscope);

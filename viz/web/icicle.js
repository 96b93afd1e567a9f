// The same step as an icicle: one row a depth, width = probability of the whole path down to here, by p or by q.
(function (D) {
  "use strict";
  const ROW = 62, SPACE = 4;

  /** x and width of every node in [0, 1], by the product of `field` along the path; nodes without a value take p. */
  D.placeIcicle = function (step, field) {
    const { nodes, view } = step, x = [], w = [];
    const value = (i) => { const v = nodes[field][i]; return v === null || v === undefined ? nodes.p[i] || 0 : v; };
    const open = [[-1, 0, 1]];
    while (open.length) {
      const [node, left, width] = open.pop();
      if (node !== -1) { x[node] = left; w[node] = width; }
      const kids = view.children.get(node) || [];
      const total = kids.reduce((sum, i) => sum + value(i), 0), scale = total > 1 ? 1 / total : 1;
      let at = left;
      for (const i of kids) {
        const share = value(i) * scale * width;
        open.push([i, at, share]);
        at += share;
      }
    }
    return { x, w };
  };

  D.icicleDrawing = function (stage, hooks) {
    const cells = D.svg("g", {});
    stage.append(cells);
    return {
      g: stage,
      /** size: {width, height} of the box in px. */
      draw(step, rootPiece, field, size) {
        const { nodes, view } = step, { x, w } = D.placeIcicle(step, field);
        const pieces = D.mendTree(step, rootPiece);
        const wide = size.width - 24, deepest = Math.max(0, ...nodes.depth);
        const row = Math.min(ROW, (size.height - 24) / (deepest + 2));
        cells.replaceChildren();
        const cell = (attributes, left, width, depth, text, status) => {
          const px = 12 + left * wide, pw = Math.max(2, width * wide - 1.5), py = 12 + depth * row, h = row - SPACE;
          const g = D.svg("g", { class: "ds-node ds-cell", role: "button", tabindex: -1, "data-status": status, ...attributes },
            D.svg("rect", { class: "ds-halo", x: px - 3, y: py - 3, width: pw + 6, height: h + 6, rx: 5 }),
            D.svg("rect", { class: "ds-shape", x: px, y: py, width: pw, height: h, rx: 4 }));
          const room = Math.floor((pw - 10) / 7.9);
          if (room >= 1) {
            const label = D.svg("text", { class: "ds-label", x: px + 7, y: py + h / 2, dy: "0.35em" });
            label.textContent = D.shorten(D.visible(text), room);
            g.append(label);
          }
          cells.append(g);
          return g;
        };
        cell({ "data-root": "", "aria-label": hooks.name(step, -1), "data-token-text": rootPiece }, 0, 1, 0, pieces.root, "root");
        for (let i = 0; i < view.count; i++) {
          cell({ "data-node": i, "data-token-text": nodes.piece[i], "aria-label": hooks.name(step, i) }, x[i], w[i], nodes.depth[i], pieces[i], nodes.status[i]);
        }
        if (view.final) {                            // it stands in what its parent's children left over, or below them if that is too little
          const parent = view.final.parent, kids = view.children.get(parent) || [];
          const left = parent < 0 ? 0 : x[parent], width = parent < 0 ? 1 : w[parent];
          const taken = kids.reduce((sum, i) => sum + w[i], 0), free = Math.max(width - taken, Math.min(width, 70 / wide));
          cell({ "data-final": view.final.kind, "data-token-text": view.final.piece, "aria-label": hooks.name(step, "final") },
            Math.min(left + width - free, 1 - free), free, kids.length && width - taken < 70 / wide ? deepest + 1 : (parent < 0 ? 1 : nodes.depth[parent] + 1), pieces[view.count], view.final.kind);
        }
      },
      element(node) {
        if (node === "final") return cells.querySelector("[data-final]");
        return cells.querySelector(node === -1 ? "[data-root]" : `[data-node="${Number(node)}"]`);
      },
    };
  };
})(globalThis.Draftscope);

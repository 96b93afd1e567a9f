// A step as an icicle: one row per depth; a cell's width is the probability of the whole path down to it, by p or by q.
/** @import { Step } from "./types.d.ts" */
import { setAttributes, svgEl } from "./base.js";
import { sourceMark } from "./sources.js";
import { mendTree } from "./tree-places.js";
import { shorten, visible } from "./words.js";

const ROW = 62, SPACE = 4, NOTE = 20;   // NOTE: the height of the line below the cells

/** The value of `field` for the final token; p if the trace has no list of that field; 0 outside the top few. */
function finalShare({ final, distributions }, field) {
  const { [field]: own, p } = distributions.get(final.parent) || {}, list = own && own.length ? own : p || [];
  const found = list.find(([token]) => token === final.token);
  return found ? found[2] : 0;
}

/**
 * x and width of every node in [0, 1], by the product of `field` along the path; nodes without a value take p. Node
 * `count` is the final token. Room that the children do not fill stays empty: it belongs to other tokens. No cell is
 * narrower than `least` as long as
 * its parent has room.
 * @type {(step: Step, field: "p" | "q", least: number) => { x: number[], w: number[] }}
 */
export function placeIcicle(step, field, least) {
  const { nodes, view } = step, x = [], w = [];
  const value = (i) => { const v = nodes[field][i]; return v === null || v === undefined ? nodes.p[i] || 0 : v; };
  const ofFinal = view.final ? finalShare(view, field) : 0;
  const open = [[-1, 0, 1]];
  while (open.length) {
    const [node, left, width] = open.pop();
    if (node !== -1) { x[node] = left; w[node] = width; }
    const kids = view.children.get(node) || [], shares = kids.map((i) => Math.max(value(i) * width, least));
    if (view.final && view.final.parent === node) shares.push(Math.max(ofFinal * width, least));
    const total = shares.reduce((sum, share) => sum + share, 0), scale = total > width ? width / total : 1;
    let at = left;
    shares.forEach((share, k) => {
      if (k < kids.length) open.push([kids[k], at, share * scale]);
      else { x[view.count] = at; w[view.count] = share * scale; }
      at += share * scale;
    });
  }
  return { x, w };
}

/**
 * @param {any} stage
 * @param {any} hooks
 */
export function icicleDrawing(stage, hooks) {
  const cells = svgEl("g", {}), halo = svgEl("rect", { class: "ds-halo", rx: 5 });
  stage.append(cells);
  return {
    g: stage,
    /** size: {width, height} of the box in px; waits(node): whether the node still waits for its verdict. */
    draw(step, rootPiece, field, size, waits = (_node) => false) {
      const { nodes, view } = step, { x, w } = placeIcicle(step, field, 7 / Math.max(100, size.width));
      const pieces = mendTree(step, rootPiece);
      const { merged } = hooks.sources, wide = size.width - 24, deepest = Math.max(0, ...nodes.depth);
      const row = Math.min(ROW, (size.height - 24 - NOTE) / (deepest + 2));
      cells.replaceChildren();
      const cell = (attributes, left, width, depth, text, status) => {
        const px = 12 + left * wide, pw = Math.max(2, width * wide - 1.5), py = 12 + depth * row, h = row - SPACE;
        const g = svgEl("g",
          { class: "ds-node ds-cell", role: "button", tabindex: -1, "data-status": status, ...attributes },
          svgEl("rect", { class: "ds-shape", x: px, y: py, width: pw, height: h, rx: 4 }));
        const room = Math.floor((pw - 10) / 7.9);
        if (room >= 1) g.append(svgEl("text",
          { class: "ds-label", x: px + 7, y: py + h / 2, dy: "0.35em", text: shorten(visible(text), room) }));
        cells.append(g);
        return g;
      };
      cell({ "data-root": "", "aria-label": hooks.name(step, -1), "data-token-text": rootPiece }, 0, 1, 0, pieces.root,
        "root");
      for (let i = 0; i < view.count; i++) {
        const own = { "data-node": i, "data-token-text": nodes.piece[i], "aria-label": hooks.name(step, i, waits(i)),
          "data-look": waits(i) ? "drafted" : null, "data-dim": merged && hooks.sources.dims(step, i) };
        const g = cell(own, x[i], w[i], nodes.depth[i], pieces[i], nodes.status[i]);
        const source = merged ? hooks.sources.of(step, i) : null;
        if (source === null || w[i] * wide <= 14) continue;
        const left = (12 + x[i] * wide + 7).toFixed(1), top = (12 + nodes.depth[i] * row + 6).toFixed(1);
        g.append(sourceMark(source,
          { "data-source": source, transform: `translate(${left} ${top}) scale(0.8)` }));
      }
      if (view.final) {
        const { kind, look, piece, parent } = view.final, i = view.count;
        cell({ "data-final": kind, "data-look": look === kind ? null : look, "data-token-text": piece,
          "aria-label": hooks.name(step, "final") }, x[i], w[i], parent < 0 ? 1 : nodes.depth[parent] + 1, pieces[i],
          kind);
      }
    },
    /** Put the ring around the chosen cell. */
    mark(node) {
      const cell = this.element(node), box = cell.querySelector(".ds-shape");
      const at = (name) => Number(box.getAttribute(name));
      setAttributes(halo, { x: at("x") - 3, y: at("y") - 3, width: at("width") + 6, height: at("height") + 6 });
      cell.prepend(halo);
    },
    element(node) {
      if (node === "final") return cells.querySelector("[data-final]");
      return cells.querySelector(node === -1 ? "[data-root]" : `[data-node="${Number(node)}"]`);
    },
  };
}

// Where the nodes of a step's tree stand, and what they show.
/** @import { Step } from "./types.d.ts" */
import { chipSize, CROWDS } from "./chip.js";
import { layout } from "./layout.js";
import { patchOf } from "./picture.js";
import { mend } from "./words.js";

const GAP = 30;                                    // between the widest chips of two columns, px

/**
 * The middle of each column, px; a column is as wide as its widest chip. sizes, depth: by node.
 * @param {any} root
 * @param {any[]} sizes
 * @param {number[]} depth
 */
export function columns(root, sizes, depth) {
  const widths = [root.w];
  sizes.forEach((size, i) => { widths[depth[i]] = Math.max(widths[depth[i]] || 0, size.w); });
  const middles = [0];
  for (let d = 1; d < widths.length; d++) middles.push(middles[d - 1] + widths[d - 1] / 2 + GAP + widths[d] / 2);
  return { middles, right: middles[middles.length - 1] + widths[widths.length - 1] / 2 };
}

/**
 * The places of a step's nodes, px. Node `count` is the final token; `middles`: of the columns before spreading.
 * @type {(step: Step, rootPiece: string, crowd: number) => any}
 */
export function placeTree(step, rootPiece, crowd) {
  const { nodes, view } = step, count = view.count;
  const pieces = mendTree(step, rootPiece);
  const sizes =
    nodes.piece.map((_, i) => chipSize(pieces[i], nodes.status[i], crowd, patchOf(view.run, nodes.token[i])));
  const depth = nodes.depth.slice(), parent = nodes.parent.slice();
  const children = new Map(view.children);
  if (view.final) {
    sizes.push(chipSize(pieces[count], view.final.kind, 0, patchOf(view.run, view.final.token)));
    depth.push(view.final.parent < 0 ? 1 : nodes.depth[view.final.parent] + 1);
    parent.push(view.final.parent);
    children.set(view.final.parent, [...(children.get(view.final.parent) || []), count]);
  }
  const root = chipSize(pieces.root, "root", 0, patchOf(view.run, view.root));
  /** @type {any} */
  const heights = sizes.map((size) => size.h);
  heights.root = root.h;
  const { y, top, bottom } = layout(children, heights, CROWDS[crowd][2]);
  return { pieces, sizes, root, depth, parent, y, top, bottom, ...columns(root, sizes, depth) };
}

/**
 * Pieces with split characters mended along each path; keys: node index, count (the final token), root.
 * @param {Step} step
 * @param {string} rootPiece
 */
export function mendTree(step, rootPiece) {
  const { nodes, view } = step, /** @type {any} */ mended = nodes.piece.slice();
  mended.root = rootPiece;
  const split = (piece) => piece.startsWith("⟨");
  const along = (leaf, piece) => {
    const path = [];
    for (let i = leaf; i >= 0; i = nodes.parent[i]) path.unshift(nodes.piece[i]);
    const all = [rootPiece, ...path, ...(piece === undefined ? [] : [piece])];
    return mend(all)[all.length - 1];
  };
  for (let i = 0; i < view.count; i++) if (split(nodes.piece[i])) mended[i] = along(i) || nodes.piece[i];
  if (view.final) mended[view.count] = split(view.final.piece) ? along(view.final.parent, view.final.piece)
    || view.final.piece : view.final.piece;
  return mended;
}

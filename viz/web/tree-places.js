// Where the nodes of a step's tree stand, and what they show.
/** @import { Step } from "./types.d.ts" */
import { chipSize } from "./chip.js";
import { foldsOf } from "./folds.js";
import { layout } from "./layout.js";
import { patchOf } from "./picture.js";
import { drawnWords, savedWords } from "./step-words.js";
import { mend, textWidth } from "./words.js";

/**
 * How a tree lies: to the right, its ways below one another, or downwards, on a narrow canvas, its ways beside one
 * another. apart: between the largest chips of two depths, gap: between ways, px; judged, ignored: what a way takes.
 */
const LIES = {
  right: { apart: 30, gap: 7, judged: 35, ignored: 27 },
  down: { apart: 14, gap: 12, judged: 92, ignored: 66 },
};
const NOTE = 16, NOTE_FONT = "12px system-ui, sans-serif";

/**
 * The middle of each depth, px, which has the room of its largest chip. root, sizes, depth: how far the chips reach
 * along the tree, and their depths.
 * @param {number} root
 * @param {number[]} sizes
 * @param {number[]} depth
 * @param {number} apart
 */
export function columns(root, sizes, depth, apart) {
  const widths = [root];
  sizes.forEach((size, i) => { widths[depth[i]] = Math.max(widths[depth[i]] || 0, size); });
  const middles = [0];
  for (let d = 1; d < widths.length; d++) middles.push(middles[d - 1] + widths[d - 1] / 2 + apart + widths[d] / 2);
  return { middles, far: middles[middles.length - 1] + widths[widths.length - 1] / 2 };
}

/**
 * The places of a step's nodes, px. Node `count` is the final token; the nodes after it are folds, `folds` tells of
 * each {parent, count, at}. shown: by node, whether it is drawn. across: by node, across the tree, from low to high;
 * middles: of the depths before spreading, which reach as far as `far`. room: of the canvas across the tree; opened:
 * the parents whose folds the reader has opened.
 * @type {(step: Step, rootPiece: string, lies: "right" | "down", room: number, opened?: Set<number>) => any}
 */
export function placeTree(step, rootPiece, lies, room, opened) {
  const { apart, gap, ...own } = LIES[lies], down = lies === "down";
  const { nodes, view } = step, count = view.count, { shown, folds } = foldsOf(step, room, own, opened);
  const pieces = mendTree(step, rootPiece), notes = nodes.piece.map((_, i) => savedWords(step, i));
  notes[count] = drawnWords(step);
  const sized = (i, status, token) => {
    const size = chipSize(pieces[i], status, patchOf(view.run, token));
    return notes[i] ? { ...size, wide: Math.max(size.w, textWidth(notes[i], NOTE_FONT)), tall: size.h + 2 * NOTE }
      : size;
  };
  const sizes = nodes.piece.map((_, i) => shown[i] && sized(i, nodes.status[i], nodes.token[i]));
  const depth = nodes.depth.slice(), parent = nodes.parent.slice(), children = new Map();
  const hang = (node, above) => {
    depth[node] = above < 0 ? 1 : nodes.depth[above] + 1;
    parent[node] = above;
    children.set(above, [...(children.get(above) || []), node]);
  };
  for (let i = 0; i < count; i++) if (shown[i]) hang(i, parent[i]);
  if (view.final) {
    sizes[count] = sized(count, view.final.kind, view.final.token);
    hang(count, view.final.parent);
  }
  const more = [...folds].map(([above, folded], k) => {
    const at = count + 1 + k;
    sizes[at] = chipSize(folded ? `+${folded}` : "−", "ignored");
    hang(at, above);
    return { parent: above, count: folded, at };
  });
  const root = chipSize(pieces.root, "root", patchOf(view.run, view.root));
  const wide = (size) => size && (size.wide || size.w), high = (size) => size && (size.tall || size.h);
  const [along, across] = down ? [high, wide] : [wide, high];
  /** @type {any} */
  const widths = sizes.map(across);
  widths.root = across(root);
  const { y, top, bottom } = layout(children, widths, gap), seen = (_, i) => Boolean(sizes[i]);
  return { pieces, sizes, root, depth, parent, shown, notes, folds: more, across: y, low: top, high: bottom,
    half: along(root) / 2, ...columns(along(root), sizes.filter(seen).map(along), depth.filter(seen), apart) };
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

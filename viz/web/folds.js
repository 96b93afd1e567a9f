// Which ignored tokens of a step are folded into "+9", so that its tree fits the canvas with every word legible.
/** @import { Step } from "./types.d.ts" */

/**
 * shown: by node, whether it is drawn. folds: by parent, how many tokens are folded below it, 0 where the reader has
 * opened them and may close them again. room: px for ways beside one another; own: {judged, ignored}: what one way
 * takes of it; opened: the parents that the reader opened. Judged tokens and the ways to them are always drawn, of the
 * ignored ones the first that fit. A token alone is never folded: the fold would take its place.
 * @type {(step: Step, room: number, own: { judged: number, ignored: number }, opened?: Set<number>) =>
 *   { shown: boolean[], folds: Map<number, number> }}
 */
export function foldsOf({ nodes, view }, room, own, opened = new Set()) {
  const { parent, status } = nodes, shown = status.map((word) => word !== "ignored");
  const end = view.final ? view.final.parent : -1;
  if (end >= 0) shown[end] = true;
  for (let i = view.count - 1; i >= 0; i--) if (shown[i] && parent[i] >= 0) shown[parent[i]] = true;

  // by parent: children drawn, and children left out
  const drawn = new Map(), left = new Map(), add = (map, key, by) => map.set(key, (map.get(key) || 0) + by);
  for (let i = 0; i < view.count; i++) add(shown[i] ? drawn : left, parent[i], 1);
  if (view.final) add(drawn, end, 1);

  const seen = (node) => node === -1 || shown[node];
  let used = view.final ? own.judged : 0;
  for (let i = -1; i < view.count; i++) {
    if (seen(i) && !drawn.get(i) && !left.get(i)) used += own.judged;   // the end of a way
    if (seen(i) && left.get(i)) used += own.ignored;
  }
  for (let i = 0; i < view.count; i++) {
    const above = parent[i];
    if (shown[i] || !seen(above)) continue;
    const more = left.get(above) === 1 ? 0 : own.ignored;
    if (more && !opened.has(above) && used + more > room) continue;
    shown[i] = true;
    used += more;
    add(left, above, -1);
  }

  const folds = new Map(), top = [];
  for (let i = 0; i < view.count; i++) {
    if (shown[i]) continue;
    top[i] = seen(parent[i]) ? parent[i] : top[parent[i]];
    add(folds, top[i], 1);
  }
  for (const node of opened) if (seen(node) && !folds.has(node)) folds.set(node, 0);
  return { shown, folds };
}

/**
 * The parents whose folds hide this node. shown: by node, whether it is drawn.
 * @type {(step: Step, node: number, shown: boolean[]) => number[]}
 */
export function wayTo({ nodes }, node, shown) {
  const way = [];
  for (let i = node; shown[i] === false; i = nodes.parent[i]) way.push(nodes.parent[i]);
  return way;
}

// A tidy tree: root at (0, 0), depth to the right, siblings below one another in the order in which they came.
// After Buchheim, Jünger & Leipert, "Improving Walker's Algorithm to Run in Linear Time" (2002), with two packings, one
// from above and one from below, averaged: spacing constraints are linear, so the average keeps them, and small
// subtrees end up in the middle.

/** Smallest distance between two subtrees, given their outlines by depth ([top, bottom] pairs). */
function clearance(above, below) {
  let push = 0;
  const depths = Math.min(above.length, below.length);
  for (let d = 0; d < depths; d++) push = Math.max(push, above[d][1] - below[d][0]);
  return push;
}

function pack(children, heights, gap, fromBelow) {
  const offset = new Map();                        // node -> y relative to its parent
  const outline = new Map();                       // node -> [[top, bottom] by depth, relative to the node]
  const half = (node) => (node === -1 ? heights.root : heights[node]) / 2 + gap / 2;
  // parents come before children, so the reverse order meets children first
  const order = [...children.keys()].sort((a, b) => b - a);
  const place = (node) => {
    let kids = children.get(node) || [];
    if (fromBelow) kids = kids.slice().reverse();
    const sign = fromBelow ? -1 : 1;
    let joined = [];
    const at = [];
    for (const kid of kids) {
      const mine = (outline.get(kid) || [[-half(kid), half(kid)]]).map(([t, b]) => (fromBelow ? [-b, -t] : [t, b]));
      const push = at.length ? clearance(joined, mine) : 0;
      at.push(push);
      joined = mine.map(([t, b], d) => [joined[d] ? Math.min(joined[d][0], t + push) : t + push, b + push])
        .concat(joined.slice(mine.length));
    }
    const middle = at.length ? (at[0] + at[at.length - 1]) / 2 : 0;
    kids.forEach((kid, i) => offset.set(kid, sign * (at[i] - middle)));
    const shape =
      [[-half(node), half(node)]].concat(
        joined.map(([t, b]) => (fromBelow ? [middle - b, middle - t] : [t - middle, b - middle])));
    outline.set(node, shape);
  };
  order.forEach(place);
  if (!children.has(-1)) place(-1);
  return { offset, outline };
}

/**
 * children: Map parent -> [nodes], root -1; heights: array by node, plus heights.root. Returns
 * {y: array by node, top, bottom}: y of each node's middle with the root at 0, and how far the drawing reaches.
 * @param {Map<number, number[]>} children
 * @param {number[] & { root: number }} heights
 * @param {number} gap
 */
export function layout(children, heights, gap) {
  const first = pack(children, heights, gap, false), second = pack(children, heights, gap, true);
  const y = [];
  let top = -heights.root / 2, bottom = heights.root / 2;
  const walk = [[-1, 0]];
  while (walk.length) {
    const [node, at] = walk.pop();
    if (node !== -1) {
      y[node] = at;
      top = Math.min(top, at - heights[node] / 2);
      bottom = Math.max(bottom, at + heights[node] / 2);
    }
    for (const kid of children.get(node) || []) {
      walk.push([kid, at + (first.offset.get(kid) + second.offset.get(kid)) / 2]);
    }
  }
  return { y, top, bottom };
}

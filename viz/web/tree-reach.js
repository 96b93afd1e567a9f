// How far the trees of a run reach, and so how large all of them are drawn.
/** @import { Step } from "./types.d.ts" */
/** @import { Model } from "./view-types.d.ts" */
import { clamp } from "./base.js";
import { scaleOf } from "./camera.js";
import { wayTo } from "./folds.js";
import { placeTree } from "./tree-places.js";

export const EDGE = 12;                            // around the drawing, px
const USUAL = 360, WIDER = 1.8, NARROW = 480;

/**
 * The places of all steps of a run. Every step is drawn at one scale, that of the largest, and its root stands in one
 * place. limits: of the scale; at the usual one, large trees are folded until they fit. turns: whether trees grow
 * downwards on a narrow canvas.
 * @param {{ least: number, usual: number, most: number, turns: boolean }} limits
 */
export function treeReach(limits) {
  let reach = null, places = new WeakMap(), opened = new Map(), known = 0, size = { width: 0, height: USUAL };
  let down = false;

  function forget() { reach = null; places = new WeakMap(); known = 0; }

  /** The places of a step; a step whose folds the reader has opened does not count for the run's extents. */
  function placeOf(step, rootPiece) {
    let place = places.get(step);
    if (place) return place;
    const open = opened.get(step), room = (down ? size.width : size.height / limits.usual) - 2 * EDGE;
    place = placeTree(step, rootPiece, down ? "down" : "right", room, open);
    places.set(step, place);
    if (open && reach) return place;
    reach = reach || { low: 0, high: 0, far: 0, half: 0 };
    reach.low = Math.min(reach.low, place.low);
    for (const edge of ["high", "far", "half"]) reach[edge] = Math.max(reach[edge], place[edge]);
    return place;
  }

  /** The scale of the run, and by how much its depths are spread. */
  function measure() {
    const along = reach.half + reach.far + 2 * EDGE, across = reach.high - reach.low + 2 * EDGE;
    const k = down ? scaleOf(across, along, size, limits) : scaleOf(along, across, size, limits);
    const spare = (down ? size.height : size.width) / k - reach.half - 2 * EDGE;
    return { k, spread: clamp(spare / Math.max(1, reach.far), 1, WIDER) };
  }

  return {
    /** Forget the run. */
    reset() { forget(); opened = new Map(); },
    /** Whether trees grow downwards. */
    get down() { return down; },
    /** The size of the canvas; another one leaves room for more ways, or for fewer. */
    resize(width, height) {
      const turned = limits.turns && width < NARROW;
      if (height !== size.height || turned !== down || (down && width !== size.width)) forget();
      size = { width, height };
      down = turned;
    },
    /**
     * Take the extents of the steps that have arrived.
     * @type {(model: Model) => void}
     */
    grow(model) { for (; known < model.steps.length; known++) placeOf(model.steps[known], model.rootPiece(known)); },
    /**
     * The places of a step, its depths spread.
     * @type {(step: Step, rootPiece: string) => any}
     */
    of(step, rootPiece) {
      const place = placeOf(step, rootPiece), { spread } = measure();
      const along = place.depth.map((d) => place.middles[d] * spread);
      [place.x, place.y] = down ? [place.across, along] : [along, place.across];
      return place;
    },
    /** Whether these are still the places of the step. */
    holds: (step, place) => places.get(step) === place,
    /** The run's extents and scale; far, top, bottom: how far this step reaches. */
    box(place) {
      const { k, spread } = measure(), begin = -reach.half - EDGE, end = reach.far * spread + EDGE;
      if (down) return { k, down, left: place.low - EDGE, far: place.high + EDGE, top: begin, bottom: end };
      return { k, left: begin, right: end, far: place.far * spread + EDGE, top: place.low - EDGE,
        bottom: place.high + EDGE, low: Math.min(reach.low, place.low) - EDGE,
        high: Math.max(reach.high, place.high) + EDGE };
    },
    /**
     * Open the fold below a parent, or close it.
     * @type {(step: Step, parent: number) => void}
     */
    toggle(step, parent) {
      const open = new Set(opened.get(step));
      if (!open.delete(parent)) open.add(parent);
      opened.set(step, open);
      places.delete(step);
    },
    /**
     * Open all folds that hide this node.
     * @type {(step: Step, node: number) => void}
     */
    unfold(step, node) {
      opened.set(step, new Set([...(opened.get(step) || []), ...wayTo(step, node, places.get(step).shown)]));
      places.delete(step);
    },
  };
}

// Where the tour's card stands beside the thing that it explains. Pure arithmetic, in px of the window.
/** @import { Box, Size } from "./types.d.ts" */

const GAP = 16, EDGE = 12;

const clamp = (value, low, high) => Math.max(low, Math.min(high, value));

const PLACES = {
  below: (spot) => ({ left: spot.left, top: spot.bottom + GAP }),
  above: (spot, card) => ({ left: spot.left, top: spot.top - GAP - card.height }),
  right: (spot) => ({ left: spot.right + GAP, top: spot.top }),
  "above, at its end": (spot, card) => ({ left: spot.right - card.width, top: spot.top - GAP - card.height }),
  "below, at its end": (spot, card) => ({ left: spot.right - card.width, top: spot.bottom + GAP }),
  left: (spot, card) => ({ left: spot.left - GAP - card.width, top: spot.top }),
};

const union = (a, b) =>
  ({ left: Math.min(a.left, b.left), top: Math.min(a.top, b.top), right: Math.max(a.right, b.right),
    bottom: Math.max(a.bottom, b.bottom) });

const inside = (at, card, room) => at.left >= EDGE - 1 && at.top >= EDGE - 1
  && at.left + card.width <= room.width - EDGE + 1 && at.top + card.height <= room.height - EDGE + 1;

/** How much of the spot the card would hide at this place. */
function hidden(at, card, spot) {
  const wide = Math.min(at.left + card.width, spot.right) - Math.max(at.left, spot.left);
  const high = Math.min(at.top + card.height, spot.bottom) - Math.max(at.top, spot.top);
  return Math.max(0, wide) * Math.max(0, high);
}

/**
 * spot: {left, top, right, bottom} of the lit element; card, room: {width, height}; sides: best first; free: a box
 * that should also stay visible, or null. Returns {left, top}, always inside the room: the first side with room for
 * the whole card that does not hide the spot; with `free`, of all such sides of the spot and of both boxes together,
 * the one that hides least of `free`. Where there is none, the side that hides least of the spot.
 * @type {(spot: Box, card: Size, room: Size, sides: string[], free?: Box | null) => { left: number, top: number }}
 */
export function placeCard(spot, card, room, sides, free = null) {
  const fit = (at) => ({
    left: clamp(at.left, EDGE, Math.max(EDGE, room.width - EDGE - card.width)),
    top: clamp(at.top, EDGE, Math.max(EDGE, room.height - EDGE - card.height)),
  });
  const wishes = free ? sides.flatMap((side) => [side, `${side}, at its end`]).filter((side) => side in PLACES) : sides;
  const asked = (free ? [spot, union(spot, free)] : [spot])
    .flatMap((by) => wishes.map((side) => PLACES[side](by, card)));
  const least = (places, box) =>
    places.reduce((best, at) => (hidden(at, card, box) < hidden(best, card, box) ? at : best));
  const good = asked.map((at) => ({ ...at, left: fit(at).left }))
    .filter((at) => inside(at, card, room) && !hidden(at, card, spot));
  if (good.length) return free ? least(good, free) : good[0];
  return least(asked.map(fit), spot);
}

/** The spot and `free` together, if they and the card fit one below the other; else the spot alone. */
function seenTogether(spot, card, room, free) {
  const both = free ? union(spot, free) : spot;
  return both.bottom - both.top + GAP + card.height + 2 * EDGE <= room.height ? both : spot;
}

/**
 * How far the page should scroll so that the spot, the card and `free` are in view; 0 if they already are.
 * @type {(lit: Box, card: Size, room: Size, sides: string[], free?: Box | null) => number}
 */
export function scrollFor(lit, card, room, sides, free = null) {
  const spot = seenTogether(lit, card, room, free);
  const seen = spot.top >= EDGE && spot.bottom <= room.height - EDGE;
  const high = spot.bottom - spot.top, at = placeCard(spot, card, room, sides);
  if (seen && !hidden(at, card, spot)) return 0;
  const both = high + GAP + card.height;
  const top = both + 2 * EDGE <= room.height ? (room.height - both) / 2 : EDGE;
  return spot.top - (sides.indexOf("above") === 0 && both + 2 * EDGE <= room.height ? top + GAP + card.height : top);
}

// p and q of each token as areas over one another: what both cover is kept, what q has alone is refused, and what p has
// alone is the residual. Coins fall into them: a guess of token x with coin c lands at the height c · q(x), so it is
// kept exactly where it lands in what both cover.
import { el, svgEl } from "../base.js";
import { chartWidth } from "./chart.js";

const HIGH = 176, FLOOR = 146, TOP = 22, WIDEST = 150, RADIUS = 3.2;
const ACROSS = 0.754878, UP = 0.569840;   // multiples of them never crowd in a square
const REGIONS = { both: "kept: what p and q have in common", refused: "refused: what q has too much",
  residual: "residual: what p still lacks" };
const NAMES = Object.keys(REGIONS);

/**
 * The areas of each token, from bottom to top: {both, refused, residual}, each [from, to].
 * @type {(p: number[], q: number[]) => Record<string, number[]>[]}
 */
export const areasOf = (p, q) => p.map((share, x) => {
  const both = Math.min(share, q[x]);
  return { both: [0, both], refused: [both, q[x]], residual: [both, share] };
});

/**
 * Where the coins of a toss come to lie: {token, height, region} of the guess, and of its replacement after a refusal.
 * A rule that draws the replacement from all of p drops it anywhere in p.
 * @type {(toss: { drafted: number, accept: number, coin: number, kept: boolean, token: number }, p: number[],
 *   q: number[], spot: number, fromP: boolean) => { token: number, height: number, kind: string }[]}
 */
export function coinsOf({ drafted, coin, kept, token }, p, q, spot, fromP) {
  const first = { token: drafted, height: coin * q[drafted], kind: kept ? "kept" : "refused" };
  if (kept) return [first];
  const low = fromP ? 0 : Math.min(p[token], q[token]);
  return [first, { token, height: low + spot * (p[token] - low), kind: "drawn" }];
}

/**
 * The picture. tosses: those whose coins lie in it, the last one last; falling: whether the last one falls now.
 * told: whether the key tells the size of each area.
 * @type {(words: string[], laws: { p: number[], q: number[] }, tosses: any[], fromP: boolean, falling: boolean,
 *   told: boolean) => Element}
 */
export function overlapPicture(words, { p, q }, tosses, fromP, falling, told) {
  const WIDE = chartWidth(), room = WIDE / words.length, wide = Math.min(WIDEST, room - 20);
  const highest = Math.max(...p, ...q), y = (share) => FLOOR - (share / highest) * (FLOOR - TOP);
  const left = (x) => (x + 0.5) * room - wide / 2;
  const areas = areasOf(p, q), sums = Object.fromEntries(NAMES.map((name) =>
    [name, areas.reduce((sum, one) => sum + Math.max(0, one[name][1] - one[name][0]), 0)]));
  const columns = areas.map((one, x) => svgEl("g", {},
    ...NAMES.filter((name) => one[name][1] > one[name][0]).map((name) => svgEl("rect",
      { class: "ln-area", "data-area": name, x: left(x), width: wide, y: y(one[name][1]),
        height: y(one[name][0]) - y(one[name][1]) })),
    ...["q", "p"].map((letter) => svgEl("path",
      { class: "ln-edge", "data-letter": letter, d: `M${left(x) - 5} ${y({ p, q }[letter][x])}h${wide + 10}` })),
    svgEl("text",
      { x: (x + 0.5) * room, y: FLOOR + 20, "text-anchor": "middle", class: "ln-word-label", text: words[x] })));
  const coins = tosses.flatMap((toss, i) => coinsOf(toss, p, q, (i * UP) % 1, fromP)
    .map(({ token, height, kind }, k) => svgEl("circle",
      { class: "ln-coin", "data-coin": kind, "data-falls": falling && i === tosses.length - 1 ? k + 1 : null,
        cx: left(token) + RADIUS + ((i * ACROSS) % 1) * (wide - 2 * RADIUS), cy: y(height), r: RADIUS })));
  const size = (area) => Math.max(0, area[1] - area[0]).toFixed(2);
  const parts = (x) => NAMES.map((one) => `${one} ${size(areas[x][one])}`).join(", ");
  const spoken = words.map((name, x) => `${name}: ${parts(x)}`).join("; ");
  const key = el("p", { class: "ln-key" }, ...NAMES.map((name) => el("span", {},
    svgEl("svg", { width: 14, height: 14, viewBox: "0 0 14 14", "aria-hidden": "true" },
      svgEl("rect", { class: "ln-area", "data-area": name, width: 14, height: 14 })),
    told ? `${REGIONS[name]}, ${sums[name].toFixed(2)}` : REGIONS[name])));
  const picture = svgEl("svg", { class: "ln-chart ln-overlap", viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img",
    "aria-label": `Areas under p and q. ${spoken}` },
  svgEl("path", { class: "ln-axis", d: `M0 ${FLOOR}H${WIDE}` }), ...columns, ...coins);
  return el("div", { class: "ln-areas" }, picture, key);
}

// The rule of speculative sampling at one place of the text, and three ways to break it. Pure functions; p and q are
// lists that sum to 1.
import { clamp } from "../base.js";

/** The chance that a drafted token is kept. */
const keeping = (p, q, x) => (q[x] > 0 ? Math.min(1, p[x] / q[x]) : 1);

/**
 * The part of p that exceeds q, scaled to sum to 1; p itself if nothing is left.
 * @type {(p: number[], q: number[]) => number[]}
 */
export function residual(p, q) {
  const left = p.map((share, x) => Math.max(0, share - q[x])), sum = left.reduce((a, b) => a + b, 0);
  return sum > 0 ? left.map((share) => share / sum) : p.slice();
}

/** A token drawn from a law with one random number. */
function drawFrom(law, random) {
  let left = random() * law.reduce((a, b) => a + b, 0), last = 0;
  for (let x = 0; x < law.length; x++) {
    if (law[x] <= 0) continue;
    last = x;
    left -= law[x];
    if (left < 0) return x;
  }
  return last;
}

/** The rules by name: the chance of keeping a token, and the law of the token that replaces a refused one. */
export const RULES = {
  exact: { title: "The rule", keep: keeping, redraw: residual },
  always: { title: "Keep every guess", keep: () => 1, redraw: (p) => p },
  compare: { title: "Keep only where p is at least q", keep: (p, q, x) => Number(p[x] >= q[x]), redraw: residual },
  "plain redraw": { title: "After a refusal draw from p", keep: keeping, redraw: (p) => p },
};

/**
 * One token by this rule: {drafted, accept, coin, kept, token}.
 * @param {string} rule
 * @param {number[]} p
 * @param {number[]} q
 * @param {() => number} random
 */
export function tossOnce(rule, p, q, random) {
  const { keep, redraw } = RULES[rule], drafted = drawFrom(q, random), accept = keep(p, q, drafted), coin = random();
  const kept = coin < accept;
  return { drafted, accept, coin, kept, token: kept ? drafted : drawFrom(redraw(p, q), random) };
}

const SEEN = 300;   // tosses that are told one by one

/**
 * How often each token came out in this many tosses, how many guesses were kept, and the last tosses.
 * @param {string} rule
 * @param {number[]} p
 * @param {number[]} q
 * @param {number} times
 * @param {() => number} random
 */
export function tossMany(rule, p, q, times, random) {
  const counts = p.map(() => 0);
  const last = [];
  let kept = 0;
  for (let i = 0; i < times; i++) {
    const toss = tossOnce(rule, p, q, random);
    if (i >= times - SEEN) last.push(toss);
    counts[toss.token]++;
    kept += Number(toss.kept);
  }
  return { counts, kept, last };
}

/**
 * Set one share of a law; the others give or take in proportion, so that the sum stays 1.
 * @type {(law: number[], index: number, share: number) => number[]}
 */
export function withShare(law, index, share) {
  const wanted = clamp(share, 0, 1), rest = law.reduce((sum, other, x) => sum + (x === index ? 0 : other), 0);
  return law.map((other, x) => (x === index ? wanted : rest > 0 ? (other / rest) * (1 - wanted)
    : (1 - wanted) / (law.length - 1)));
}

/**
 * Tokens that a step gains on average, when each of k guesses is kept with chance alpha: 1 + α + … + α^k.
 * @type {(alpha: number, k: number) => number}
 */
export const expectedTokens = (alpha, k) => (alpha >= 1 ? k + 1 : (1 - alpha ** (k + 1)) / (1 - alpha));

/**
 * How many times as fast as plain decoding, when drafting a token costs `cost` passes of the target.
 * @type {(alpha: number, cost: number, k: number) => number}
 */
export const speedup = (alpha, cost, k) => expectedTokens(alpha, k) / (1 + cost * k);

/**
 * The length up to `longest` that gives the highest speed; 0 if no draft pays.
 * @type {(alpha: number, cost: number, longest: number) => number}
 */
export function bestLength(alpha, cost, longest) {
  let best = 0;
  for (let k = 1; k <= longest; k++) if (speedup(alpha, cost, k) > speedup(alpha, cost, best) + 1e-12) best = k;
  return best;
}

/**
 * Milliseconds of a pass over this many rows, by the bytes of the weights and a machine's peaks: {bandwidth} GB/s,
 * {arithmetic} GFLOP/s. Each of the parameters takes two operations per row.
 * @param {{ bandwidth: number, arithmetic: number }} machine
 * @param {number} bytes
 * @param {number} parameters
 * @param {number} rows
 */
export const roofline = ({ bandwidth, arithmetic }, bytes, parameters, rows) =>
  Math.max(bytes / (bandwidth * 1e6), (2 * parameters * rows) / (arithmetic * 1e6));

/**
 * The number of rows that a pass reads in the time of one row.
 * @type {(machine: { bandwidth: number, arithmetic: number }, bytes: number, parameters: number) => number}
 */
export const freeRows = ({ bandwidth, arithmetic }, bytes, parameters) =>
  Math.max(1, Math.floor((bytes / bandwidth) * (arithmetic / (2 * parameters))));

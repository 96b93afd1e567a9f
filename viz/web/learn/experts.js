// An instrument of two targets with experts: which experts the rows of a pass need together, what such a pass costs,
// and how long a draft pays.
import { el, svgEl, writeText } from "../base.js";
import { chartKey, lessonChart, lessonSlider } from "./chart.js";
import { expectedTokens } from "./law.js";
import { shorten } from "../words.js";

const CELL = 10, HIGH = 15, LEFT = 96, TOP = 6, two = (value) => value.toFixed(2);
const percent = (share) => `${Math.round(100 * share)} %`;

/**
 * How many times as fast as plain decoding drafts of k tokens are, by what passes over 1, 2 … rows take; drafting
 * itself is taken to cost nothing, as looking up does.
 * @type {(kept: number, wide: number[], k: number) => number}
 */
export const expertSpeed = (kept, wide, k) => expectedTokens(kept, k) * wide[0] / wide[k];

/**
 * The length that is fastest.
 * @type {(kept: number, wide: number[]) => number}
 */
export const expertBest = (kept, wide) => wide.reduce((best, _, k) =>
  (expertSpeed(kept, wide, k) > expertSpeed(kept, wide, best) + 1e-12 ? k : best), 0);

/**
 * The experts that at least one of the first rows uses, in order.
 * @type {(uses: number[][], rows: number) => number[]}
 */
export const neededExperts = (uses, rows) => [...new Set(uses.slice(0, rows).flat())].toSorted((a, b) => a - b);

/** The experts of one layer by the rows of a pass, and below them those that the pass needs. */
function grid({ experts, uses }, pieces, rows) {
  const needed = neededExperts(uses, rows), foot = TOP + uses.length * HIGH + 8;
  const cells = (numbers, y) =>
    numbers.map((e) => `M${LEFT + e * CELL} ${y}h${CELL - 1}v${HIGH - 2}h${1 - CELL}z`).join("");
  const word = (y, words, kind) =>
    svgEl("text", { x: LEFT - 8, y: y + HIGH - 5, "text-anchor": "end", class: kind, text: words });
  const row = (used, i) => [
    svgEl("path", { class: "ln-expert", "data-in": String(i < rows), d: cells(used, TOP + i * HIGH) }),
    word(TOP + i * HIGH, shorten(pieces[i].trim() || "⏎", 11), i < rows ? "ln-word-label" : "")];
  return svgEl("svg", { class: "ln-chart", viewBox: `0 0 ${LEFT + experts * CELL} ${foot + HIGH}`, role: "img",
    "aria-label": `${needed.length} of the ${experts} experts of a layer are needed by at least one of ${rows} rows.` },
  ...uses.flatMap(row), svgEl("path", { class: "ln-expert", "data-in": "all", d: cells(needed, foot) }),
  word(foot, "needed", "ln-word-label"));
}

/**
 * spec: {target, alpha, targets: [{name, experts, uses, idle, milliseconds, wide}], pieces, kept, wider, machine}.
 * @param {any} spec
 * @param {{ changed(): void }} hooks
 */
export function lessonExperts(spec, { changed }) {
  const longest = spec.pieces.length - 1, names = spec.targets.map(({ name }) => name);
  let chosen = names.indexOf(spec.target), k = 7, alpha = spec.alpha ?? spec.kept;
  const again = () => { draw(); changed(); };
  const pick = el("select", { class: "ln-select", "aria-label": "Target", onchange: () => {
    chosen = Number(pick.value);
    again();
  } }, ...names.map((name, i) => el("option", { value: i, text: name, selected: i === chosen })));
  const slider = lessonSlider({ label: "k, tokens drafted in a step", low: 0, high: longest, step: 1, value: k,
    onInput: (value) => { k = value; again(); } });
  const chance = lessonSlider({ label: "α, a guess is kept", low: 0, high: 0.99, step: 0.01, value: alpha, told: two,
    onInput: (value) => { alpha = value; again(); } });
  const picture = el("div", { class: "ln-picture" }), said = el("p", { class: "ln-verdict", role: "status" });
  const sheet = el("p", { class: "ln-quiet" });
  const element = el("div", { class: "ln-experts" }, el("div", { class: "ln-buttons" }, pick), slider.element,
    chance.element, picture, said, sheet);

  const speed = ({ wide }, length) => expertSpeed(alpha, wide, length);
  const bestOf = ({ wide }) => expertBest(alpha, wide);
  function draw() {
    const target = spec.targets[chosen], ks = Array.from({ length: longest + 1 }, (_, i) => i);
    const lines = spec.targets.map((one) => ({ name: one.name, dots: true,
      points: ks.map((at) => [at, speed(one, at)]) }));
    const fastest = spec.targets.map((one) => `${one.name} is fastest at ${bestOf(one)}`).join(", ");
    const top = Math.ceil(2 * Math.max(...lines.flatMap(({ points }) => points.map(([, y]) => y)))) / 2;
    const best = bestOf(target);
    picture.replaceChildren(grid(target, spec.pieces, k + 1), lessonChart({
      x: { low: 0, high: longest, ticks: ks.filter((i) => i % 2 === 0).map((i) => [i, String(i)]),
        label: "k, tokens drafted in a step" },
      y: { low: 0, high: top, ticks: Array.from({ length: Math.floor(2 * top) + 1 }, (_, i) => [i / 2, String(i / 2)]),
        label: "times as fast" },
      lines, marks: spec.targets.map((one) => ({ at: [bestOf(one), speed(one, bestOf(one))],
        words: `best ${bestOf(one)}`, kind: one === target ? "best" : "own" })),
      told: `Speed over draft length: ${fastest}.`,
    }), chartKey(names));
    writeText(said, `${target.name}, k = ${k}: a pass over ${k + 1} row${k ? "s" : ""} leaves out ` +
      `${percent(target.idle[k])} of the experts and costs ${two(target.wide[k] / target.wide[0])} times a pass over ` +
      `one row. Decoding is ${two(speed(target, k))} times as fast; best is k = ${best}.`);
    writeText(sheet, `The picture shows one layer and one text; the shares are of all layers and six texts. A guess ` +
      `of the small draft was kept with chance ${two(spec.kept)} at temperature 1; the price of drafting is left ` +
      `out. Passes were measured with each expert ${spec.wider} times as wide, as in a larger model, on one thread ` +
      `of ${spec.machine}. Of the small target itself a pass over 8 rows takes ` +
      `${two(target.milliseconds[7] / target.milliseconds[0])} times one row.`);
  }
  draw();
  return { element, settings: () => ({ target: names[chosen], k, alpha }),
    depends: { idle: ["target", "k"], best: ["target", "alpha"] },
    tell: { target: (name) => `choose “${name}”`, k: (count) => `set k to ${count}`,
      alpha: (value) => `set α to ${two(value)}` },
    readings: () => ({ idle: spec.targets[chosen].idle[k], best: bestOf(spec.targets[chosen]) }) };
}

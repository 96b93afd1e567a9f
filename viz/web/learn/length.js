// Two instruments that calculate: up to which length a draft pays, and what a pass costs by the number of its rows.
import { el, writeText } from "../base.js";
import { chartKey, chartWidth, lessonChart, lessonSlider } from "./chart.js";
import { bestLength, expectedTokens, freeRows, roofline, speedup } from "./law.js";

const two = (value) => value.toFixed(2), each = (value) => (value < 0.1 ? value.toPrecision(2) : two(value));

/**
 * spec: {start: {alpha, cost, drafted, gain}, longest, example, speed}. speed: false leaves out the price and the
 * speed.
 * @param {any} spec
 * @param {{ changed(): void }} hooks
 */
export function lessonLength(spec, { changed }) {
  const speedy = spec.speed !== false, dearest = Math.max(1, Math.ceil(spec.start.cost * 100) / 100);
  const now = { alpha: spec.start.alpha, cost: spec.start.cost, k: Math.min(4, spec.longest) };
  const again = () => { draw(); changed(); };
  const slider = (name, label, high, step, told) =>
    lessonSlider({ label, low: 0, high, step, value: now[name], told,
      onInput: (value) => { now[name] = value; again(); } });
  const parts = { alpha: slider("alpha", "α, a guess is kept", 0.99, 0.01, two),
    cost: slider("cost", "c, price of a drafted token", dearest, 0.01, (value) => `${two(value)} passes`),
    k: slider("k", "k, tokens drafted in a step", spec.longest, 1, String) };
  const picture = el("div", { class: "ln-picture" }), said = el("p", { class: "ln-verdict", role: "status" });
  const back = el("button",
    { type: "button", class: "ln-button", text: speedy ? "α and c of the run" : "α of the run", onclick: () => {
      Object.assign(now, { alpha: spec.start.alpha, cost: spec.start.cost });
      again();
    } });
  const knobs = Object.entries(parts).filter(([name]) => speedy || name !== "cost").map(([, one]) => one.element);
  const { alpha: chance, cost: price, drafting, checking, drafted, gain, speed } = spec.start;
  const kept = `In the run ${spec.example}${spec.lane ? `, lane ${spec.lane},` : ""} a guess was kept with chance ` +
    `${two(chance)}.`;
  const measured = () => ` A drafted token cost ${two(price)} of a pass over one row: ${two(drafting)} to draft it, ` +
    `${two(checking)} for its row in the check. It drafted ${drafted.toFixed(1)} tokens a step, gained ` +
    `${two(gain)}, and was ${two(speed)} times as fast as plain decoding, measured.`;
  const element = el("div", { class: "ln-length" }, ...knobs, el("div", { class: "ln-buttons" }, back), picture, said,
    el("p", { class: "ln-quiet", text: speedy ? kept + measured() : kept }));

  function draw() {
    for (const [name, one] of Object.entries(parts)) one.set(now[name]);
    const { alpha, cost, k } = now, ks = Array.from({ length: spec.longest + 1 }, (_, i) => i);
    const best = bestLength(alpha, cost, spec.longest);
    const fast = ks.map((i) => [i, speedup(alpha, cost, i)]), gained = ks.map((i) => [i, expectedTokens(alpha, i)]);
    const top = Math.ceil(Math.max(2, ...gained.map(([, y]) => y)));
    const ticks = Array.from({ length: Math.min(top, 8) + 1 }, (_, i) => Math.round((i * top) / Math.min(top, 8)));
    picture.replaceChildren(lessonChart({
      x: { low: 0, high: spec.longest, ticks: ks.filter((i) => i % Math.ceil(spec.longest / 8) === 0)
        .map((i) => [i, String(i)]), label: "k, tokens drafted in a step" },
      y: { low: 0, high: top, ticks: [...new Set(ticks)].map((i) => [i, String(i)]),
        label: speedy ? "times" : "tokens a step" },
      lines: [...(speedy ? [{ name: "times as fast as plain decoding", points: fast, dots: true }] : []),
        { name: "tokens a step", points: gained, dots: !speedy }],
      marks: !speedy ? [{ at: [k, expectedTokens(alpha, k)], words: `k ${k}`, kind: "own" }]
        : [{ at: [best, speedup(alpha, cost, best)], words: `best ${best}`, kind: "best" },
          ...(k === best ? [] : [{ at: [k, speedup(alpha, cost, k)], words: `k ${k}`, kind: "own" }])],
      told: !speedy ? `Tokens a step over draft length. At ${k}: ${two(expectedTokens(alpha, k))}.`
        : `Speed over draft length. Best at ${best}: ${two(speedup(alpha, cost, best))} times plain decoding. At ` +
        `${k}: ${two(speedup(alpha, cost, k))} times.`,
    }), chartKey([...(speedy ? ["times as fast as plain decoding"] : []), "tokens a step"]));
    writeText(said, !speedy ? `With k = ${k} a step gains ${two(expectedTokens(alpha, k))} tokens.` : best
      ? `With k = ${k} a step gains ${two(expectedTokens(alpha, k))} tokens and decoding is ` +
      `${two(speedup(alpha, cost, k))} times as fast. Best is k = ${best}: ${two(speedup(alpha, cost, best))} times.`
      : `With k = ${k} decoding is ${two(speedup(alpha, cost, k))} times as fast. No draft pays here: best is to ` +
      `draft nothing.`);
  }
  draw();
  const to = (letter) => (value) => `set ${letter} to ${letter === "k" ? value : two(value)}`;
  return { element, settings: () => ({ ...now }), depends: { best: ["alpha", "cost"], gain: ["alpha", "k"] },
    tell: { alpha: to("α"), cost: to("c"), k: to("k") },
    readings: () => ({ best: bestLength(now.alpha, now.cost, spec.longest), gain: expectedTokens(now.alpha, now.k) }) };
}

// a model of eight billion weights of two bytes each, for the machines of the data sheets
const MODEL = 8e9, MOST = 512;

/**
 * spec: {measured: [[rows, ms]], bytes, machines}.
 * @param {any} spec
 * @param {{ changed(): void }} hooks
 */
export function lessonPasses(spec, { changed }) {
  const first = spec.measured[0][1];
  const lines =
    [{ name: "measured: the small model of these runs",
      points: spec.measured.filter(([rows]) => rows <= MOST).map(([rows, ms]) => [rows, Math.max(1, ms / first)]),
      dots: true }];
  let chosen = 1 + spec.machines.findIndex(({ name }) => name === spec.machine), rows = 8;
  const over = (machine, count) => roofline(machine, 2 * MODEL, MODEL, count);
  const steps = Array.from({ length: 28 }, (_, i) => 2 ** (i / 3)).filter((count) => count <= MOST + 1);
  for (const machine of spec.machines)
    lines.push({ name: machine.name, dots: false,
      points: steps.map((count) => [count, over(machine, count) / over(machine, 1)]) });
  const again = () => { draw(); changed(); };
  const pick = el("select", { class: "ln-select", "aria-label": "Machine", onchange: () => {
    chosen = Number(pick.value);
    again();
  } }, ...lines.map(({ name }, i) => el("option", { value: i, text: name, selected: i === chosen })));
  const slider =
    lessonSlider({ label: "n, rows in one pass", low: 0, high: 9, step: 1, value: 3,
      told: (power) => String(2 ** power), onInput: (power) => { rows = 2 ** power; again(); } });
  const picture = el("div", { class: "ln-picture" }), said = el("p", { class: "ln-verdict", role: "status" });
  const sheet = el("p", { class: "ln-quiet" });
  const element = el("div", { class: "ln-passes" }, el("div", { class: "ln-buttons" }, pick), slider.element, picture,
    said, sheet);

  /** The cost of a pass over this many rows, in passes over one row, interpolated between the points of the line. */
  function relative(count) {
    const { points } = lines[chosen], at = points.findIndex(([x]) => x >= count);
    if (at < 0) return null;
    if (at === 0) return points[0][1];
    const [[x0, y0], [x1, y1]] = [points[at - 1], points[at]];
    return y0 + ((count - x0) / (x1 - x0)) * (y1 - y0);
  }
  const free = () => (chosen ? freeRows(spec.machines[chosen - 1], 2 * MODEL, MODEL)
    : Math.max(...spec.measured.filter(([, ms]) => ms <= 2 * first).map(([count]) => count)));

  function draw() {
    const price = relative(rows), ticks = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];
    picture.replaceChildren(lessonChart({
      x: { low: 1, high: MOST, log: true, ticks: ticks.filter((i, at) => at % 2 === 0 || chartWidth() > 400)
        .map((i) => [i, String(i)]), label: "n, rows in one pass" },
      y: { low: 0.5, high: 64, log: true, ticks: [1, 2, 4, 8, 16, 32, 64].map((i) => [i, `${i}×`]),
        label: "cost of the pass" },
      lines: lines.map((one, i) => ({ ...one, faint: i !== chosen })),
      marks: price === null ? [] : [{ at: [rows, price], words: `${rows} rows: ${two(price)}×`, kind: "own" }],
      told: `Cost of a pass over rows, in passes over one row. ` +
        `${price === null ? "" : `${rows} rows cost ${two(price)}.`}`,
    }), chartKey(lines.map(({ name }) => name)));
    writeText(said, price === null ? `A pass over ${rows} rows was not measured.`
      : `A pass over ${rows} rows costs ${two(price)} times a pass over one row: ${each(price / rows)} a row.`);
    writeText(sheet, chosen ? `From peak figures, which no program reaches: ` +
      `${spec.machines[chosen - 1].sheet}. A model of eight billion weights, two bytes each: ` +
      `${over(spec.machines[chosen - 1], 1).toFixed(1)} ms a pass for up to ${free()} rows.`
      : `Median passes of finished runs: ${first.toFixed(2)} ms over one row. The weights have ` +
      `${(spec.bytes / 1e6).toFixed(0)} MB, and every pass reads all of them.`);
  }
  draw();
  return { element, settings: () => ({ machine: lines[chosen].name, rows }),
    depends: { free: ["machine"], gain: ["machine", "rows"] },
    tell: { machine: (name) => `choose “${name}”`, rows: (count) => `set n to ${count}` },
    readings: () => ({ free: free(), gain: relative(rows) }) };
}

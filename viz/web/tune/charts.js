// The figures of a tuning: gains by size and drafter and by size and number of texts, acceptance by position, the cost
// of a pass.
/** @import { AnswerLine, Grid, SettingLine, TuneFigure, TuneHost, TuningRecord } from "./types.d.ts" */
import { el } from "../base.js";
import { numberText } from "../cells.js";
import { chartKey, lessonChart } from "../learn/chart.js";
import { plural } from "../words.js";
import { gainText, heatMap } from "./heat.js";
import { acceptanceOf, besideTheBest, hardlyKnown, sizeByDrafter, sizeByTexts, wilson } from "./record.js";

const LINES = 6, DRAFTERS = 4, FEWEST = 8, PERCENT = 100;
const CHECKED = "Green frame: the answer, the fastest of those that were checked by running (✓); the others are "
  + "predicted.";
/** What is said of the cells that are hardly known. */
export const ROUGH = "Settings with ~ fell behind after a few prompts: their gains are rough, without a shade or a "
  + "line.";
const round = (value, digits = 3) => (value === null ? null : Number(value.toFixed(digits)));
const texts = (count) => (count === 1 ? "one text" : `${count} texts at once`);

/** A cell of a heat map in a sentence. */
function told(cell, host) {
  const how = cell.kind === "estimate" ? "estimated" : cell.checked === null ? "predicted" : "checked by running";
  const law = cell.lossless === false ? ", lossy" : "";
  const on = cell.prompts === null ? "" : `, on ${plural(cell.prompts, "prompt")}`;
  return `${host.title(cell.drafter)}, ${plural(cell.size, "token")}, ${texts(cell.texts)}: `
    + `${gainText(cell.ratio)} plain decoding${law} (${how}${on}).`;
}
const watch = (cell, host) => host.watch({ drafter: cell.drafter, options: cell.options, verifier: cell.verifier },
  "Watch it, step by step");

/** @type {(grid: Grid, settings: SettingLine[], answer: AnswerLine | null, spec: any, host: TuneHost) => any} */
function heat(grid, settings, answer, { key, title, note, columns, columnLabel }, host) {
  const all = grid.cells.flat().filter(Boolean), few = hardlyKnown(settings), known = all.filter((one) => !few(one));
  const best = (known.length ? known : all).reduce((a, b) => (b.ratio > a.ratio ? b : a));
  const drawn = heatMap({ grid, rough: few, text: (cell) => `${few(cell) ? "~" : ""}${gainText(cell.ratio)}`,
    answered: ({ drafter, size, texts: count }) => drafter === answer?.drafter && size === answer.size && count === 1,
    rows: grid.rows.map(String), columns, rowLabel: "tokens drafted", columnLabel,
    told: (cell) => told(cell, host), link: (cell) => watch(cell, host) });
  return { key, title, note, svg: drawn.svg, keys: drawn.keys, readout: drawn.readout, body: el("div", {}, drawn.svg),
    summary: `${grid.rows.length} sizes by ${columns.length}. The largest: ${told(best, host)} `
      + "Arrow keys read the cells.",
    table: { columns: ["drafter", "tokens drafted", "texts at once", "rule", "times plain decoding",
      "predicted tokens/s", "checked tokens/s", "plain tokens/s"],
    rows: all.map((one) => [one.drafter, one.size, one.texts, one.verifier, round(one.ratio), round(one.predicted, 2),
      round(one.checked, 2), round(one.plain, 2)]) } };
}

/** @type {(settings: SettingLine[], answer: AnswerLine | null, host: TuneHost) => TuneFigure} */
export function drafterFigure(settings, answer, host) {
  const grid = sizeByDrafter(besideTheBest(settings)), fewest = Math.min(...settings.map((one) => one.texts));
  return heat(grid, settings, answer, { key: "drafters",
    title: `Which drafter, and how many tokens? (${texts(fewest)})`,
    note: `${CHECKED} ${ROUGH} Tokens a second, as a multiple of plain decoding on this machine and these prompts. `
      + "The line parts what pays from what does not.",
    columns: grid.columns.map((key) => host.title(String(key))), columnLabel: "drafter" }, host);
}

/** @type {(settings: SettingLine[], drafter: string, answer: AnswerLine | null, host: TuneHost) => TuneFigure} */
export function textsFigure(settings, drafter, answer, host) {
  const grid = sizeByTexts(besideTheBest(settings), drafter);
  return heat(grid, settings, answer, { key: `texts-${drafter.replace(/[^\w-]/g, "")}`,
    title: `From how many texts on does it hurt? (${host.title(drafter)})`,
    note: "The line is where drafting stops paying; where the answer names a number between two columns, it lies on a "
      + "straight line between their gains. Many texts in one pass fill the arithmetic of the machine, and rows for "
      + `drafts are no longer nearly free. ${ROUGH} ${CHECKED}`,
    columns: grid.columns.map(String), columnLabel: "texts at once" }, host);
}

/** Ticks at whole positions, or at the values themselves where these are few. */
const ticks = (values) => values.map((value) => [value, numberText(value)]);

/** @type {(record: TuningRecord, kind: string, host: TuneHost) => TuneFigure | null} */
export function acceptanceFigure(record, kind, host) {
  const lines = acceptanceOf(record, kind);
  const counted = lines.map(({ drafter, size, positions }) => ({ drafter, size,
    all: positions.filter(({ reached }) => reached > 0)
      .map((one) => ({ ...one, rate: one.accepted / one.reached, bounds: wilson(one.accepted, one.reached) })) }))
    .filter((one) => one.all.length).slice(0, DRAFTERS)
    .map((one) => ({ ...one, rates: one.all.filter(({ reached }, i) => i === 0 || reached >= FEWEST) }));
  if (!counted.length) return null;
  const far = Math.max(...counted.flatMap(({ rates }) => rates.map(({ position }) => position)));
  const every = Math.ceil(far / 8);
  const names = counted.map(({ drafter, size }) => (size ? `${host.title(drafter)}, ${size}` : host.title(drafter)));
  // side by side, so that the bars of two drafters do not cover each other
  const aside = (i) => (i - (counted.length - 1) / 2) * 0.07;
  const svg = lessonChart({
    x: { low: 0.6, high: far + 0.4, label: "position in the draft", ticks: ticks(Array.from({ length: far },
      (_, i) => i + 1).filter((at) => (at - 1) % every === 0)) },
    y: { low: 0, high: 1, label: "% kept, of those reached", ticks: [0, 0.25, 0.5, 0.75, 1].map((share) => [share,
      share * PERCENT]) },
    lines: counted.map(({ rates }, i) => ({ name: names[i], dots: true,
      points: rates.map(({ position, rate }) => [position + aside(i), rate]),
      spread: rates.map(({ position, bounds }) => [position + aside(i), ...bounds]) })),
    told: `Acceptance by position of ${names.join(", ")}`,
  });
  return { key: `acceptance-${kind.replace(/[^\w-]/g, "")}`, title: "How often is a drafted token kept?",
    note: "Of the steps that reached a position, the share in which its token was kept. Bars: 95 % intervals (Wilson), "
      + `as if steps were independent; those of one text are not quite. Places that fewer than ${FEWEST} steps reached `
      + "stand in the numbers alone.",
    svg, body: el("div", {}, svg, chartKey(names)),
    summary: counted.map(({ rates }, i) => `${names[i]}: ${Math.round(rates[0].rate * PERCENT)} % at position `
      + `${rates[0].position}, ${Math.round(rates.at(-1).rate * PERCENT)} % at ${rates.at(-1).position}`).join(". "),
    table: { columns: ["drafter", "size", "position", "reached", "kept", "share", "low", "high"],
      rows: counted.flatMap(({ drafter, size, all }) => all.map(({ position, reached, accepted, rate, bounds }) =>
        [drafter, size, position, reached, accepted, round(rate), round(bounds[0]), round(bounds[1])])) } };
}

/** The costs as lines over rows: the target for one and for the most texts, and the draft. */
function costLines(cost) {
  const groups = new Map(), alike = new Set(cost.map((one) => one.context)).size < 2;
  for (const one of cost) {
    const name = `${one.what}, ${texts(one.texts)}${alike ? "" : `, ${one.context ?? 0} tokens before`}`;
    groups.set(name, [...(groups.get(name) || []), one]);
  }
  return [...groups].map(([name, of]) => ({ name, of: of.sort((a, b) => a.rows - b.rows) }))
    .filter(({ of }) => of.length > 1).slice(0, LINES);
}

/** @type {(record: TuningRecord) => TuneFigure | null} */
export function costFigure({ cost }) {
  const lines = costLines(cost), all = lines.flatMap(({ of }) => of);
  if (!all.length) return null;
  const rows = [...new Set(all.map((one) => one.rows))].sort((a, b) => a - b), most = Math.max(...all
    .map((one) => one.milliseconds));
  const powers = rows.filter((count) => Number.isInteger(Math.log2(count)));
  const high = most * 1.08, step = 10 ** Math.floor(Math.log10(high)), nice = [1, 2, 5].map((k) => k * step / 2)
    .find((one) => high / one <= 6) || step * 2.5;
  const steps = Array.from({ length: Math.floor(high / nice) + 1 }, (_, i) => i * nice);
  const svg = lessonChart({
    x: { low: rows[0], high: Math.max(rows.at(-1), rows[0] * 2), log: true, label: "rows of a text in one pass",
      ticks: ticks(powers.length ? powers : rows) },
    y: { low: 0, high, label: "milliseconds a pass", ticks: ticks(steps) },
    lines: lines.map(({ name, of }) => ({ name, dots: true, points: of.map((one) => [one.rows, one.milliseconds]) })),
    told: `Milliseconds of a pass over its rows: ${lines.map(({ name }) => name).join("; ")}`,
  });
  return { key: "costs", title: "What does a pass cost?",
    note: "A row is a token read: the last one, and one for each drafted token. Flat is free; where the line rises, "
      + "checking drafts costs time.",
    svg, body: el("div", {}, svg, chartKey(lines.map(({ name }) => name))),
    summary: lines.map(({ name, of }) => `${name}: ${numberText(of[0].milliseconds)} ms for `
      + `${plural(of[0].rows, "row")}, ${numberText(of.at(-1).milliseconds)} ms for ${of.at(-1).rows}`).join(". "),
    table: { columns: ["model", "rows", "texts at once", "tokens before", "milliseconds"],
      rows: cost.map((one) => [one.what, one.rows, one.texts, one.context, round(one.milliseconds)]) } };
}

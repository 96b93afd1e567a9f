// The lines of a tuning record. They may be a stranger's, so every value is checked here; what cannot be read is
// counted.
/** @import { Grid, Position, SettingLine, TuningRecord } from "./types.d.ts" */
import { isNumber, shortText } from "../cells.js";

/** The drafter of plain decoding. */
export const PLAIN = "none";
const MOST = 20_000, POSITIONS = 64, KINDS = 24, COSTS = 300, LESS = 0.75;

const number = (value) => (isNumber(value) ? value : null);
const whole = (value) => (Number.isInteger(value) && value >= 0 && value <= 1e9 ? value : null);
const word = (value, most = 60) => shortText(value, most).trim();
const table = (value) => (value && typeof value === "object" && !Array.isArray(value) ? value : {});

/**
 * reached: null where the source does not say.
 * @type {(given: any) => Position | null}
 */
function position(given) {
  const { position: at, reached = null, accepted } = table(given);
  const fits = whole(at) && (reached === null || whole(reached) !== null) && whole(accepted) !== null;
  return fits && (reached === null || accepted <= reached) ? { position: at, reached, accepted } : null;
}

function setting(line, kind) {
  const { drafter, size, texts, ratio } = line, key = word(drafter);
  if (!key || whole(size) === null || !whole(texts) || !isNumber(ratio) || ratio < 0) return null;
  return { kind, drafter: key, options: table(line.options), size, verifier: word(line.verifier),
    lossless: typeof line.lossless === "boolean" ? line.lossless : null, texts, ratio,
    predicted: number(line.predicted), checked: number(line.checked), plain: number(line.plain),
    machine: word(line.machine), prompts: whole(line.prompts) };
}

/** By kind: the line with the fields that are drawn; null where it cannot be drawn. */
const READ = {
  tuning: (line) => line,
  cost({ what, rows, texts, context, milliseconds }) {
    const fits = word(what) && whole(rows) && whole(texts) && isNumber(milliseconds) && milliseconds > 0;
    return fits ? { kind: "cost", what: word(what, 20), rows, texts, context: whole(context), milliseconds } : null;
  },
  acceptance(line) {
    const { drafter, options, size, positions, source, stated } = line, from = table(source);
    const read = Array.isArray(positions) ? positions.slice(0, POSITIONS).map(position) : [];
    const name = word(drafter) || [word(from.engine, 30), word(from.name, 30)].filter(Boolean).join(", ");
    if (!name || read.includes(null) || !(read.length || whole(line.steps) || stated)) return null;
    return { kind: "acceptance", drafter: name, options: table(options), size: whole(size),
      prompt_kind: word(line.prompt_kind) || "all", positions: read, prompts: whole(line.prompts),
      steps: whole(line.steps),
      drafted: whole(line.drafted), accepted: whole(line.accepted), new_tokens: whole(line.new_tokens),
      lacks: word(from.lacks, 400), stated: table(stated) };
  },
  setting: (line) => setting(line, "setting"),
  estimate: (line) => setting(line, "estimate"),
  answer(line) {
    const { why } = line, link = table(line.preset_link), sentence = word(line.sentence, 400);
    if (!sentence) return null;
    return { kind: "answer", sentence, drafter: word(line.drafter), size: whole(line.size),
      verifier: word(line.verifier), ratio: number(line.ratio), off_above: whole(line.off_above),
      best_tried: word(table(line.best_tried).drafter),
      why: why ? { cause: word(table(why).cause), sentence: word(table(why).sentence, 600) } : null,
      preset_link: word(link.drafter) ? { ...link, drafter: word(link.drafter), options: table(link.options) } : null };
  },
  progress: ({ done, seconds_left: left, doing }) =>
    ({ done: number(done) ?? 0, seconds_left: number(left), doing: word(doing, 160) }),
};

/** @type {() => TuningRecord} */
const empty = () => ({ head: null, cost: [], acceptance: [], setting: [], estimate: [], answer: null, progress: null,
  unread: 0 });

function add(record, text) {
  let line = null;
  try { line = JSON.parse(text); } catch { /* counted below */ }
  const kind = line && typeof line === "object" ? line.kind : "";
  const read = typeof kind === "string" && Object.hasOwn(READ, kind) ? READ[kind](line) : null;
  if (!read) record.unread += 1;
  else if (Array.isArray(record[kind])) record[kind].push(read);
  else record[kind === "tuning" ? "head" : kind] = read;
}

/**
 * A reader of a record that grows. It returns the record of the text so far, and reads only what is new; a line that is
 * not complete waits.
 * @type {() => (text: string) => TuningRecord}
 */
export function recordReader() {
  let record = empty(), read = "", lines = 0;
  return function (text) {
    if (!text.startsWith(read)) { record = empty(); read = ""; lines = 0; }
    const end = text.lastIndexOf("\n") + 1;
    for (const line of text.slice(read.length, end).split("\n")) if (line.trim() && lines < MOST) {
      add(record, line);
      lines += 1;
    }
    read = text.slice(0, end);
    return record;
  };
}

/**
 * The lines of a record that are kept: all but those that tell how far the work has come.
 * @type {(text: string) => string}
 */
export const keptLines = (text) => text.split("\n").filter((line) => line && !/^\{"kind": ?"progress"/.test(line))
  .map((line) => `${line}\n`).join("");

const ROWS = 24, COLUMNS = 12;   // of a heat map
const distinct = (values) => [...new Set(values)];
const ascending = (values) => distinct(values).sort((a, b) => a - b);

/**
 * The last word on each setting: a later line of the same setting takes the place of an earlier one. Plain decoding is
 * what all are compared with.
 */
function latest(settings) {
  const held = new Map();
  for (const one of settings) if (one.drafter !== PLAIN)
    held.set(JSON.stringify([one.drafter, one.options, one.size, one.verifier, one.texts, one.machine]), one);
  return [...held.values()];
}

/**
 * The answered setting for one text; null where the record has none.
 * @type {(record: TuningRecord) => SettingLine | null}
 */
export const answeredSetting = ({ answer, setting: settings }) => (answer && latest(settings).find((one) =>
  one.texts === 1 && one.drafter === answer.drafter && one.size === answer.size
  && one.verifier === answer.verifier)) || null;

/**
 * Whether a setting was tried on fewer prompts than others, so that its gain is hardly known.
 * @type {(settings: SettingLine[]) => (one: SettingLine) => boolean}
 */
export function hardlyKnown(settings) {
  const most = Math.max(...settings.map((one) => (one.drafter === PLAIN ? 0 : one.prompts ?? 0)));
  return (one) => one.prompts !== null && one.prompts < most - 1;
}

/**
 * The settings with the gains that those of few prompts would have on the prompts of the best known setting for as many
 * texts: its gain now over its gain after so few, times theirs. The few prompts may be easy ones.
 * @type {(settings: SettingLine[]) => SettingLine[]}
 */
export function besideTheBest(settings) {
  const few = hardlyKnown(settings), known = latest(settings).filter((one) => !few(one)), best = new Map();
  for (const one of known) if (one.ratio > (best.get(one.texts)?.ratio ?? 0)) best.set(one.texts, one);
  return settings.map((one) => {
    const now = best.get(one.texts);
    const then = few(one) && now && settings.find(({ drafter, size, verifier, texts, prompts }) =>
      drafter === now.drafter && size === now.size && verifier === now.verifier && texts === now.texts
      && prompts === one.prompts);
    return then && then.ratio > 0 ? { ...one, ratio: (one.ratio * now.ratio) / then.ratio } : one;
  });
}

/**
 * As much of it as can be drawn. Of two settings in one cell the faster is drawn, or the one that is known better.
 * @type {(settings: SettingLine[], sizes: number[], names: any[], column: (one: SettingLine) => any) => Grid}
 */
function grid(settings, sizes, names, column) {
  const rows = sizes.slice(0, ROWS), columns = names.slice(0, COLUMNS);
  const cells = rows.map(() => columns.map(() => /** @type {SettingLine | null} */ (null)));
  const few = hardlyKnown(settings), goes = (a, b) => Number(few(b)) - Number(few(a)) || a.ratio - b.ratio;
  for (const one of settings) {
    const r = rows.indexOf(one.size), c = columns.indexOf(column(one));
    if (r >= 0 && c >= 0 && (!cells[r][c] || goes(one, cells[r][c]) > 0)) cells[r][c] = one;
  }
  return { rows, columns, cells };
}

/**
 * The gain by size and drafter, for the fewest texts at once. The best drafters come first.
 * @type {(settings: SettingLine[]) => Grid}
 */
export function sizeByDrafter(settings) {
  const fewest = Math.min(...settings.map((one) => one.texts));
  const there = latest(settings).filter((one) => one.texts === fewest);
  const best = new Map();
  for (const { drafter, ratio } of there) best.set(drafter, Math.max(ratio, best.get(drafter) ?? 0));
  const columns = [...best].sort((a, b) => b[1] - a[1]).map(([key]) => key).slice(0, COLUMNS);
  const shown = there.filter((one) => columns.includes(one.drafter));
  return grid(shown, ascending(shown.map((one) => one.size)), columns, (one) => one.drafter);
}

/**
 * The gain of a drafter by size and number of texts at once.
 * @type {(settings: SettingLine[], drafter: string) => Grid}
 */
export function sizeByTexts(settings, drafter) {
  const own = latest(settings).filter((one) => one.drafter === drafter);
  return grid(own, ascending(own.map((one) => one.size)), ascending(own.map((one) => one.texts)), (one) => one.texts);
}

/**
 * The settings that were tried on the most prompts, the largest gain first; and then those after fewer prompts.
 * @type {(settings: SettingLine[]) => SettingLine[]}
 */
export function ranked(settings) {
  const all = latest(settings), few = hardlyKnown(all);
  return all.sort((a, b) => Number(few(a)) - Number(few(b)) || b.ratio - a.ratio);
}

/**
 * The lines of acceptance of one prompt kind: for each drafter the size that was tried on the most prompts, and the
 * largest of several. The fastest drafters come first.
 * @type {(record: TuningRecord, kind: string) => TuningRecord["acceptance"]}
 */
export function acceptanceOf({ acceptance, setting: settings }, kind) {
  const held = new Map(), speeds = new Map();
  const tried = (line) => line.prompts ?? line.steps ?? 0;
  const better = (line, other) => tried(line) - tried(other) || (line.size ?? 0) - (other.size ?? 0);
  for (const line of acceptance) {
    const before = held.get(line.drafter);
    if (line.prompt_kind === kind && (!before || better(line, before) >= 0)) held.set(line.drafter, line);
  }
  for (const { drafter, ratio } of settings) speeds.set(drafter, Math.max(ratio, speeds.get(drafter) ?? 0));
  return [...held.values()].sort((a, b) => (speeds.get(b.drafter) ?? 0) - (speeds.get(a.drafter) ?? 0));
}

/** @type {(record: TuningRecord) => string[]} */
export const promptKinds = ({ acceptance }) =>
  distinct(acceptance.map((one) => one.prompt_kind)).sort((a, b) => Number(b === "all") - Number(a === "all"))
    .slice(0, KINDS);

/**
 * Whether the machine was busy with something else: a pass was measured to cost far less than one over fewer rows.
 * @type {(record: TuningRecord) => boolean}
 */
export function unsteady({ cost }) {
  const some = cost.slice(0, COSTS);
  return some.some((one) => some.some((other) => one.what === other.what && one.texts === other.texts
    && one.context === other.context && one.rows < other.rows && other.milliseconds < LESS * one.milliseconds));
}

/**
 * The bounds of a share at 95 %, by Wilson (1927); null where nothing was counted.
 * @type {(kept: number, of: number) => [number, number] | null}
 */
export function wilson(kept, of) {
  if (!of) return null;
  const z = 1.96, share = kept / of, spread = (z * z) / of;
  const middle = (share + spread / 2) / (1 + spread);
  const half = (z / (1 + spread)) * Math.sqrt((share * (1 - share)) / of + spread / (4 * of));
  return [Math.max(0, middle - half), Math.min(1, middle + half)];
}

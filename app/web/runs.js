// What the text of a trace, or of a race, tells before anything is drawn.
/** @import { TracedRun } from "./types.d.ts" */

const parsed = (line) => { try { return JSON.parse(line) || {}; } catch { return {}; } };

/**
 * The beginning of a file's name, from what ran.
 * @type {(trace: string) => string}
 */
export function fileStem(trace) {
  const { lane, drafter } = parsed(trace.slice(0, trace.indexOf("\n")));
  const name = lane !== undefined ? "race" : String((drafter && drafter.key) || "trace");
  return `draftscope-${name.replace(/[^a-z0-9_-]/gi, "")}`;
}
/** @type {(trace: string, ending: string) => string} */
export const fileName = (trace, ending) => `${fileStem(trace)}.${ending}`;

/**
 * Whether a trace, or every lane of a race, has come to its summary.
 * @type {(trace: string) => boolean}
 */
export function finished(trace) {
  const lines = trace.trimEnd().split("\n"), last = parsed(lines.at(-1));
  if (last.kind !== "summary" || last.lane === undefined) return last.kind === "summary";
  const kinds = lines.map((line) => parsed(line).kind), count = (kind) => kinds.filter((one) => one === kind).length;
  return count("run") === count("summary");
}

/**
 * Whether a serving engine wrote this trace.
 * @type {(trace: string) => boolean}
 */
export const isRecorded = (trace) => Boolean(parsed(trace.split("\n", 1)[0]).recorded);

/**
 * The runs of a trace, or of a race by lane: [{run, summary or undefined}], in the order of the controls.
 * @type {(trace: string) => TracedRun[]}
 */
export function runsOf(trace) {
  const runs = new Map();
  for (const entry of trace.trimEnd().split("\n").filter(Boolean).map((line) => JSON.parse(line))) {
    const lane = entry.lane === undefined ? "" : entry.lane;
    if (entry.kind === "run") runs.set(lane, { run: entry });
    if (entry.kind === "summary" && runs.has(lane)) runs.get(lane).summary = entry;
  }
  return [...runs.values()];
}

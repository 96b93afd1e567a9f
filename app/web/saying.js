// The sentence under the buttons, from the state of a run and what its trace holds so far.
/** @import { Tab } from "./types.d.ts" */
/** @import { State } from "../../viz/web/view-types.d.ts" */
import { finished } from "./runs.js";

const many = (n, thing) => `${n} ${thing}${n === 1 ? "" : "s"}`;
const entries = (trace) => trace.trimEnd().split("\n").filter(Boolean);
const summaries = (trace) => entries(trace).filter((line) => line.includes('"kind":"summary"'))
  .map((line) => JSON.parse(line));

const run = (after) => ({
  running: () => "Running.",
  paused: (trace) => `Paused after step ${entries(trace).length - 1}: Resume goes on, Run begins anew.`,
  done(trace) {
    const { stop, steps, new_tokens: tokens, target_calls: passes } = JSON.parse(entries(trace).pop());
    if (stop === "cancelled") return steps ? `Stopped after step ${steps}.` : "Stopped before its first step.";
    const looks = `${passes} ${passes === 1 ? "pass" : "passes"} of the target`;
    return `Done: ${many(tokens, "token")} in ${many(steps, "step")}, ${looks}.${after}`;
  },
});
const SENTENCES = {
  watch: run(" ▶ plays it slowly."),
  learn: run(""),
  compare: {
    running: () => "Racing.",
    paused: () => "Paused: Resume goes on, Race begins anew.",
    done(trace) {
      const lanes = summaries(trace), over = lanes.filter(({ stop }) => stop !== "cancelled").length;
      if (over < lanes.length) return `Stopped: ${over} of ${many(lanes.length, "lane")} had come to the end.`;
      return `Done: all ${many(over, "lane")} have come to the end. ▶ plays the race.`;
    },
  },
  tune: {
    running: () => "Measuring.",
    done: (record) => (record.includes('"kind":"answer"') ? "Measured." : "Stopped before there was an answer."),
  },
};

/**
 * "" where there is nothing to say: the run is idle, or its trace has not come as far as its state.
 * @type {(kind: Tab, state: State, trace: string) => string}
 */
export function saying(kind, state, trace) {
  const said = SENTENCES[kind][state];
  if (!said || (state === "done" && kind !== "tune" && !finished(trace)) || (state === "paused" && !trace)) return "";
  return said(trace);
}

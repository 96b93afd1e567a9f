// The states of a run, and what leads from one to another. Pure: a state and an event in, the next state out.
/** @import { RunEvent, RunState } from "./types.d.ts" */

const SOON = { ask_stop: "It stops as soon as it begins.", ask_pause: "It pauses as soon as it begins." };
const LOST = "The server did not take this run: it is busy, or cannot be reached. Try again in a moment.";

/**
 * state: idle | running | paused | done | error; message: the server's words, or "" for those that fit the state;
 * unheard: the run was asked for, but nothing of it has come yet; wish: what to ask of it then, ask_stop or ask_pause.
 * @type {Readonly<RunState>}
 */
export const IDLE = Object.freeze({ state: "idle", message: "", unheard: false, wish: null });

/** @type {Record<RunEvent["kind"], (run: RunState, event: RunEvent) => RunState>} */
const NEXT = {
  /** The visitor has asked for a run, for the next step, or for the rest. */
  begun: () => ({ state: "running", message: "", unheard: true, wish: null }),
  /** The visitor wants it paused or stopped. The server does not know of the run yet, so the wish waits. */
  wished: (run, { wish }) => ({ ...run, state: "running", message: SOON[wish], wish }),
  /** The server reports. A running run with a message is one whose models are still being loaded. */
  reported(run, { state, message }) {
    const loads = state === "running" && Boolean(message);
    return loads ? { ...run, state, message } : { ...run, state, message, unheard: false, wish: null };
  },
  /** All requests are answered to the end, well or badly: a run that still seems to go on was never taken. */
  ended: (run) => (run.state === "running" ? { ...run, state: "error", message: LOST } : run),
  /** The run cannot go on. */
  failed: (run, { message }) => ({ ...run, state: "error", message }),
  /** There is something to say, whatever the state. */
  said: (run, { message }) => ({ ...run, message }),
  /** The visitor has changed a setting: a mistake is no more. whole: whether the trace on the screen is finished. */
  calmed: (run, { whole }) => (run.state === "error" ? { ...run, state: whole ? "done" : "idle", message: "" } : run),
  /** Nothing is on the screen. */
  cleared: (run) => ({ ...run, state: "idle", message: "" }),
};

/**
 * The state after an event: {kind: a name above, and what it tells}. The same object where nothing changes.
 * @type {(run: RunState, event: RunEvent) => RunState}
 */
export const nextState = (run, event) => NEXT[event.kind](run, event);

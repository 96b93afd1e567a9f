// What is known of each tab: its controls, its run, its picture. Whatever concerns a tab is kept here and asked for
// here.
/** @import { Room, RunEvent, Settings, Tab } from "./types.d.ts" */
/** @import { State, View } from "../../viz/web/view-types.d.ts" */
import { IDLE, nextState } from "./run-state.js";
import { finished, isRecorded } from "./runs.js";

const FIELDS = {
  watch: ["prompt", "heal", "pair", "json_schema", "python_names", "temperature", "top_k", "top_p", "seed",
    "max_new_tokens", "models"],
  tune: ["prompts", "temperature", "top_k", "top_p", "seed", "max_new_tokens", "models"],
  compare: ["prompt", "lanes", "temperature", "top_k", "top_p", "seed", "max_new_tokens", "models"],
};
const rooms = {};   // by name

/**
 * The tab of this name:
 * view: what draws its trace; trace: the text so far; run: its state, see run-state.js; trigger(event): tells the
 * server;
 * events: how many requests that advance the run the server has not answered to the end;
 * ran: whether a run of this visit wrote the trace; mine: the last finished run of this visit;
 * now: the controls as named values; came: whether the address has set them; asked, own: controls and own pair at Run;
 * example: the name of the example that it shows, "" for the visitor's own.
 * @type {(name: Tab) => Room}
 */
export function room(name) {
  rooms[name] ||= {
    view: null, trace: "", run: IDLE, trigger: null, events: 0, ran: false, mine: "",
    now: null, came: false, asked: null, own: null, example: undefined, heard: [],
  };
  return rooms[name];
}
/** @type {() => Tab[]} */
export const roomNames = () => /** @type {Tab[]} */ (Object.keys(rooms));

/** @type {(name: Tab) => string} */
export const traceOf = (name) => room(name).trace;
/** @type {(name: Tab) => View | null} */
export const viewOf = (name) => room(name).view;
/** @type {(name: Tab) => State} */
export const stateOf = (name) => room(name).run.state;
/** @type {(name: Tab) => string} */
export const messageOf = (name) => room(name).run.message;
/**
 * Whether the trace of a room was written by a run of this visit, not brought or made earlier.
 * @type {(name: Tab) => boolean}
 */
export const ranHere = (name) => room(name).ran;
/**
 * The last finished run of this visit, once another trace has taken its place; "" while there is none.
 * @type {(name: Tab) => string}
 */
export const putAway = (name) => (room(name).ran ? "" : room(name).mine);
/**
 * Whether a run has been asked for, but nothing of it has come yet.
 * @type {(name: Tab) => boolean}
 */
export const isWaiting = (name) => room(name).run.unheard;
/**
 * Whether nothing moves in a room: no run goes on or waits, and no steps are being replayed. Tune rests without a
 * record, too.
 * @type {(name: Tab) => boolean}
 */
export const atRest = (name) => (Boolean(traceOf(name)) || name === "tune") &&
  !["running", "paused"].includes(stateOf(name)) && !isWaiting(name) && !viewOf(name)?.playing;
/**
 * The example that a room shows, "" for the visitor's own.
 * @type {(name: Tab) => string}
 */
export const exampleShown = (name) => room(name).example || "";
/**
 * A room shows this example now. Returns the one before; undefined at first.
 * @type {(name: Tab, example: string) => string | undefined}
 */
export function setExample(name, example) {
  const r = room(name), before = r.example;
  r.example = example;
  return before;
}

/**
 * The values of a room's controls, in their order, by name.
 * @type {(name: Tab, values: any[]) => Settings}
 */
export const namedControls = (name, values) => Object.fromEntries(FIELDS[name].map((field, i) => [field, values[i]]));
/**
 * The controls as they are now; null until the address has been read.
 * @type {(name: Tab) => Settings | null}
 */
export const controlsOf = (name) => (room(name).came ? room(name).now : null);

/**
 * Call `hear` when the trace or the state of a room has changed, and once now. Returns a function that ends this.
 * @type {(name: Tab, hear: () => void) => () => void}
 */
export function follow(name, hear) {
  const r = room(name);
  r.heard.push(hear);
  hear();
  return () => { r.heard = r.heard.filter((other) => other !== hear); };
}
const tell = (name) => room(name).heard.forEach((hear) => hear());

/**
 * Something has happened to a room's run: an event of run-state.js.
 * @type {(name: Tab, event: RunEvent) => void}
 */
export function happen(name, event) {
  const r = room(name), next = nextState(r.run, event);
  if (next === r.run) return;
  r.run = next;
  if (r.view) r.view.setState(r.run.state, "");
  tell(name);
}

/**
 * The text of a room's trace, as far as it has come. A finished run of this visit is kept until the next one.
 * @type {(name: Tab, text: string) => void}
 */
export function feed(name, text) {
  const r = room(name);
  if (!r.trace || !text.startsWith(r.trace)) {
    if (r.ran && finished(r.trace)) r.mine = r.trace;
    r.ran = (text !== "" && text === r.mine) || (["running", "paused"].includes(r.run.state) && !isRecorded(text));
  }
  r.trace = text;
  r.view.feed(text);
  tell(name);
}

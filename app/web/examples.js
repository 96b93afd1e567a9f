// The examples of each tab, and the one whose settings the controls hold.
/** @import { Example, Settings, Tab } from "./types.d.ts" */
import { offer } from "./offer.js";
import { exampleShown } from "./rooms.js";

// by tab, then by name: {prompt, pair or lanes, temperature, models, json_schema, python_names, heal, look_for, listed}
const examples = {};
const brought = {};    // by tab: the example shown last; known again when all its settings are back, listed or not

/** @type {(room: Tab, all: Record<string, Example>) => void} */
export const takeExamples = (room, all) => { examples[room] = all; };
/**
 * The examples of a tab by name; undefined for a tab that nobody has opened yet.
 * @type {(room: Tab) => Record<string, Example> | undefined}
 */
export const examplesOf = (room) => examples[room];
/**
 * The prompt of a room's example; undefined where there is none of this name.
 * @type {(room: Tab, name: string) => string | undefined}
 */
export const examplePrompt = (room, name) => examples[room]?.[name]?.prompt;
/**
 * The tab shows this example now.
 * @type {(room: Tab, name: string) => void}
 */
export const bringExample = (room, name) => { brought[room] = name; };

/** A pair without the options that have their default values, so that the same pair is always the same text. */
function told({ drafter, options = {}, verifier = "", rule_options: ofRule = {} }) {
  const { drafters, rules } = offer, known = drafters[drafter];
  const changed = (values, declared) => declared.filter(({ name, default: usual }) => values[name] !== undefined
    && values[name] !== usual).map(({ name }) => [name, values[name]]);
  const judge = verifier && rules[verifier] ? rules[verifier].options : [];
  return [drafter, changed(options, known ? known.options : []), verifier, changed(ofRule, judge)];
}
const alike = (given) => {
  const value = JSON.parse(given);
  return JSON.stringify(Array.isArray(value) ? value.map(told) : told(value));
};

/**
 * The name of the example whose settings a room's controls hold: first the one shown, if it fits; "" where none does.
 * now: the controls by name.
 * @type {(room: Tab, now: Settings, shown?: string) => string}
 */
export function exampleOf(room, now, shown = exampleShown(room)) {
  const all = examples[room], own = alike(now.pair || now.lanes);
  const same = (one, name) => String(one[name] || "").trim() === String(now[name] || "").trim();
  const fits = (name) => Object.hasOwn(all, name) && all[name].prompt === now.prompt
    && all[name].temperature === Number(now.temperature)
    && ["models", "json_schema", "python_names", "heal"].every((part) => same(all[name], part))
    && alike(all[name].pair || all[name].lanes) === own;
  return [shown, brought[room], ...Object.keys(all).filter((one) => all[one].listed)].find(fits) || "";
}

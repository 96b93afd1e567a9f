// The differences between what the controls of a tab say and the run that its picture shows.
/** @import { Settings, Tab, TracedRun } from "./types.d.ts" */
/** @import { Options, Run } from "../../viz/web/types.d.ts" */
import { automaticRule, ownPair, ownTarget } from "./choices.js";
import { asking, stopStrings } from "./conversation.js";
import { offer } from "./offer.js";
import { ranHere, room, traceOf } from "./rooms.js";
import { runsOf } from "./runs.js";

const SAMPLING = [["temperature", "the temperature"], ["top_k", "top-k"], ["top_p", "top-p"], ["seed", "the seed"]];
const HELD = [["json_schema", "the JSON schema"], ["python_names", "which names may be used"],
  ["heal", "whether the prompt’s end is healed"]];

/**
 * A run's options by name, and each part that can be chosen: the run's own, or the default one if the trace does not
 * tell or the part is not here.
 * @type {(run: Pick<Run, "drafter">) => Options}
 */
export function optionsOf({ drafter }) {
  const known = offer.drafters[drafter.key], held = { ...drafter.options };
  for (const { name, part, choices, default: usual } of known ? known.options : []) {
    const had = part && (drafter.parts || {})[part];
    if (part) held[name] = choices.includes(had) ? had : usual;
  }
  return held;
}

/** The settings of a drafter and its rule that differ from the run's. asked: the pair that made the run, if known. */
function ofPair(pair, run, asked, temperature) {
  const known = offer.drafters[pair.drafter];
  if (!known || pair.drafter !== run.drafter.key) return ["the drafter"];
  const told = [], held = optionsOf(run);
  for (const { name, default: usual, label, auto } of known.options) {
    const wanted = pair.options[name] === undefined ? usual : pair.options[name];
    const left = auto && !wanted;                              // to the machine: the run has the number that came of it
    const before = asked && asked.options ? asked.options[name] ?? usual : wanted;
    if (left ? before !== wanted : held[name] !== undefined && held[name] !== wanted)
      told.push(label || name.replaceAll("_", " "));
  }
  const rule = pair.verifier || automaticRule(pair.drafter, temperature);
  if (rule !== run.verifier.key) return [...told, "the rule"];
  const judged = run.verifier.options || {};
  const called = (name) => offer.rules[rule].options.find((option) => option.name === name)?.label
    || name.replaceAll("_", " ");
  for (const [name, value] of Object.entries(pair.rule_options || {}))
    if (judged[name] !== undefined && judged[name] !== value) told.push(called(name));
  return told;
}

/** A run that stopped at its length was given just that length; any other had room left. */
function otherLength(most, summary) {
  if (!summary || !["length", "eos", "stop"].includes(summary.stop)) return false;
  return summary.stop === "length" ? summary.new_tokens !== most : summary.new_tokens > most;
}

const turnsAsText = (turns) => JSON.stringify((turns || []).map(({ role, content }) => [role, content]));

/**
 * What a run's text was held to, as the value of this control.
 * @type {(run: Pick<Run, "constraint">, key: string) => string}
 */
const heldTo = ({ constraint: held }, key) => (held?.key !== key ? "" : key === "json_schema" ? held.text.trim()
  : "true");

/** The differences in the prompt: the text, or the turns of a conversation. */
function ofPrompt(name, now, run) {
  const { prompt } = run, turns = asking(name, now.prompt, now.models), had = prompt.messages;
  if (!turns) return now.prompt === prompt.text + (heldTo(run, "heal") && run.constraint.text) ? [] : ["the prompt"];
  if (turnsAsText(turns) === turnsAsText(had)) return [];
  return [had && had.at(-1).content === now.prompt ? "the conversation" : "the prompt"];
}

/**
 * The differences in the target, and in what ends the text. own: the visitor's own pair when Run was pressed, or null.
 */
function ofOwn(name, now, { target, stop_strings: stop = [] }, own) {
  const told = [], wanted = now.models ? "" : ownTarget();
  if (own === null ? wanted && wanted !== target.name : !now.models && own !== ownPair()) told.push("the target");
  if (own !== null && name === "watch" && JSON.stringify(stop) !== JSON.stringify(stopStrings()))
    told.push("what ends the text");
  return told;
}

/**
 * The settings, in words, that differ between a room's controls and its picture's runs. asked: the run's controls, or
 * null; own: the visitor's own pair at that time, or null.
 * @type {(name: Tab, now: Settings, runs: TracedRun[], asked: Settings | null, own?: string | null) => string[]}
 */
export function differences(name, now, runs, asked, own = null) {
  if (!runs.length || runs[0].run.recorded) return [];   // no setting here makes what an engine wrote
  const { run } = runs[0], told = [], pairs = JSON.parse(now.lanes || `[${now.pair}]`);
  const before = asked ? JSON.parse(asked.lanes || `[${asked.pair}]`) : [];
  told.push(...ofPrompt(name, now, run));
  told.push(...ofOwn(name, now, run, own));
  if (now.models !== undefined && (now.models || "") !== (run.family || "")) told.push("the model");
  if (pairs.length !== runs.length) told.push("the lanes");
  else pairs.forEach((pair, i) => told.push(...ofPair(pair, runs[i].run, before[i], Number(now.temperature))));
  for (const [number, words] of SAMPLING) if (Number(now[number]) !== run.sampling[number]) told.push(words);
  for (const [key, words] of HELD) if (now[key] !== undefined && String(now[key] || "").trim() !== heldTo(run, key))
    told.push(words);
  if (runs.some(({ summary }) => otherLength(Number(now.max_new_tokens), summary)))
    told.push("the number of new tokens");
  return [...new Set(told)];
}

/**
 * The settings that differ between a room's controls and its picture.
 * @type {(name: Tab) => string[]}
 */
export function differing(name) {
  const r = room(name), here = ranHere(name);
  return differences(name, r.now, runsOf(traceOf(name)), here ? r.asked : null, here ? r.own : null);
}

/**
 * A room's controls with the sizes that this page picked for the run on the screen, in the place of those left to the
 * page: another visit may pick others, and a link is to bring this run.
 * @type {(name: Tab, now: Settings) => Settings}
 */
export function settled(name, now) {
  if (!ranHere(name) || !agrees(name)) return now;
  const runs = runsOf(traceOf(name)), pairs = JSON.parse(now.lanes || `[${now.pair}]`);
  pairs.forEach((pair, i) => {
    for (const { name: option, auto } of offer.drafters[pair.drafter].options) if (auto && !pair.options[option])
      pair.options[option] = runs[i].run.drafter.options[option];
  });
  return { ...now, ...(now.lanes ? { lanes: JSON.stringify(pairs) } : { pair: JSON.stringify(pairs[0]) }) };
}

/**
 * Run was pressed: the current settings make the next run.
 * @type {(name: Tab) => void}
 */
export function pressed(name) {
  Object.assign(room(name), { asked: room(name).now, own: ownPair() });
}
/**
 * Whether the picture matches the controls.
 * @type {(name: Tab) => boolean}
 */
export const agrees = (name) => Boolean(room(name).now && traceOf(name)) && !differing(name).length;

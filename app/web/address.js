// The state of a room as an address, which Copy link copies and the address bar shows while nothing moves.
/** @import { Settings, Tab } from "./types.d.ts" */
import { ownPair } from "./choices.js";
import { spoken } from "./conversation.js";
import { agrees, settled } from "./differences.js";
import { exampleOf, examplePrompt } from "./examples.js";
import { viewOf } from "./rooms.js";

const LONGEST = 2000;   // characters of pasted prompts in an address
const SWITCHES = { names: "python_names", heal: "heal" };
const SHORT = { t: "temperature", k: "top_k", p: "top_p", seed: "seed", n: "max_new_tokens" };

/** The beginning and the end that both addresses share; the prompt only where it is not the example's own. */
function address(room, preset, now, fill) {
  const query = new URLSearchParams();
  if (preset) query.set("preset", preset);
  if (now.prompt !== examplePrompt(room, preset)) query.set("prompt", now.prompt);
  fill(query);
  return numbers(query, now);
}

function numbers(query, now) {
  if (now.models) query.set("models", now.models);
  for (const [short, name] of Object.entries(SHORT)) if (now[name] !== null && now[name] !== undefined)
    query.set(short, now[name]);
  return query;
}

/** Tune: the prompts of this page by their kinds, or pasted ones that are short; a file is not in it. */
function ofTune(now) {
  const { source, kinds, text, all } = JSON.parse(now.prompts), query = new URLSearchParams({ tab: "tune" });
  if (all) query.set("all", "1");
  if (source === "ours") query.set("kinds", kinds.join(" "));
  if (source === "pasted" && text.length <= LONGEST) query.set("prompts", text);
  return numbers(query, now);
}

/** Write a pair into an address. names: the names of its fields there; for options, the prefix of their names. */
function write(query, pair, names) {
  query.set(names.drafter, pair.drafter);
  if (pair.verifier) query.set(names.verifier, pair.verifier);
  for (const [name, value] of Object.entries(pair.options)) query.set(names.options + name, value);
  for (const [name, value] of Object.entries(pair.rule_options)) query.set(names.rule_options + name, value);
}

/**
 * The place that the picture shows: whoever opens the link gets the run, at this step and token. A link carries neither
 * a conversation nor a visitor's own models, and then no place either.
 */
function shown(query, family) {
  if (spoken(family) || ownPair()) return;
  const { step, chosen } = viewOf("watch");
  query.set("run", "1");
  if (step < 0) return;
  query.set("step", step + 1);
  if (chosen !== null) query.set("node", chosen);
}

/** By room: the address of these controls, named as in rooms.js. preset: the example that they match, or "". */
const OF = {
  watch: (preset, now) => address("watch", preset, now, (query) => {
    write(query, JSON.parse(now.pair), { drafter: "drafter", options: "o.", verifier: "verifier", rule_options: "r." });
    if (now.json_schema) query.set("schema", now.json_schema);
    for (const [short, name] of Object.entries(SWITCHES)) if (now[name]) query.set(short, "1");
    if (agrees("watch")) shown(query, now.models);
  }),
  compare: (preset, now) => address("compare", preset, now, (query) => {
    query.set("tab", "compare");
    JSON.parse(now.lanes).forEach((lane, i) => {
      const [drafter, rule] = [`lane${i + 1}`, `rule${i + 1}`];
      write(query, lane, { drafter, options: `${drafter}.`, verifier: rule, rule_options: `${rule}.` });
    });
  }),
};

/**
 * The address of a room whose controls hold these values.
 * @type {(room: Tab, now: Settings) => URLSearchParams}
 */
export function addressOf(room, now) {
  if (room === "tune") return ofTune(now);
  const held = settled(room, now);
  return OF[room](exampleOf(room, held), held);
}

/**
 * The address of a room with settings that come from another room, without the place that it shows.
 * @type {(room: Tab, now: Settings) => URLSearchParams}
 */
export function addressWith(room, now) {
  const query = OF[room]("", now);
  for (const part of ["run", "step", "node"]) query.delete(part);
  return query;
}

// Whether the picture matches the controls. A picture that does not match is dimmed and says so.
/** @import { Conversation, Tab } from "./types.d.ts" */
import { sayBounds } from "./bounds.js";
import { setModels, setTemperature } from "./choices.js";
import { takeConversation } from "./conversation.js";
import { differing } from "./differences.js";
import { arrive, leaveAddress, settle } from "./history.js";
import { countLines } from "./prompt-box.js";
import { follow, happen, isWaiting, namedControls, room, roomNames, stateOf, traceOf, viewOf } from "./rooms.js";
import { finished } from "./runs.js";
import { el } from "../../viz/web/base.js";

const RUN = { watch: ["Run", "run"], compare: ["Race", "race"] };

const listed = (words) => (words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`);

/** The message on the picture, and the button that starts a matching run. */
function cover(name, words, running, waiting) {
  const [button, id] = RUN[name];
  const said = waiting ? "Your run begins in a moment. This picture still shows the one before."
    : running ? `Changed since this run began: ${listed(words)}.`
    : `This picture shows another run: ${listed(words)} ${words.length > 1 ? "are" : "is"} not as you set ` +
    `${words.length > 1 ? "them" : "it"}.`;
  return el("div", { class: "pg-cover", role: "status", "data-for": name }, el("p", { text: said }),
    running || waiting ? null : el("button",
      { type: "button", class: "pg-tool pg-go", text: `Press ${button} for yours`,
        onclick: () => document.getElementById(id).click() }));
}

/** What a tuning is made of, as text; of its prompts only those that are measured. */
function wishOf(settings) {
  const { source, kinds, text, all } = JSON.parse(settings.prompts);
  return JSON.stringify({ ...settings, prompts: [source === "ours" ? kinds : text, all] });
}

/** Mark a tuning whose record other settings have made. */
function lookAtRecord(name) {
  const r = room(name), running = stateOf(name) === "running";
  if (isWaiting(name)) r.asked = r.now;   // an edit just before the click comes after it
  else if (running && r.ran && r.asked) r.made = wishOf(r.asked);
  r.view.outdate?.(Boolean(r.made) && r.ran && !running && wishOf(r.now) !== r.made);
}

/** Compare once more, and mark the picture. */
function look(name) {
  const r = room(name), view = viewOf(name), trace = traceOf(name), waiting = isWaiting(name);
  const running = !waiting && stateOf(name) === "running";
  if (!view || !r.now) return;
  if (!view.cover) { lookAtRecord(name); settle(name); return; }
  const words = trace ? differing(name) : [];
  const now = JSON.stringify([words, running, waiting]);
  if (now !== r.cover) {
    r.cover = now;
    view.cover(words.length ? cover(name, words, running, waiting) : null, running);
  }
  settle(name);
  if (!running && r.came && !waiting) arrive(name, words.length === 0);
}

/**
 * Take over the values of a room's controls, in the order of its fields. came: the address has just set them.
 * @type {(name: Tab, values: any[], came: boolean) => void}
 */
export function controls(name, values, came) {
  const r = room(name), first = !r.now, before = JSON.stringify(r.now), set = r.came && !came;
  r.came = r.came || came;
  r.now = namedControls(name, values);
  if (came) sayBounds(name, r.now);
  countLines(name, r.now.prompt);
  setTemperature(name, r.now.temperature);
  setModels(name, r.now.models);
  if (first) follow(name, () => look(name));
  else if (before !== JSON.stringify(r.now)) {
    happen(name, { kind: "calmed", whole: finished(traceOf(name)) });
    if (set) leaveAddress(name, r.now);
  }
  look(name);
}
/**
 * Take over the visitor's conversation and what ends a text.
 * @type {(conversation: Conversation) => void}
 */
export function setConversation(conversation) {
  takeConversation(conversation);
  for (const name of roomNames()) look(name);
}

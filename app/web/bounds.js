// A number out of range, typed into one of Gradio's sliders or asked for by a link, is set to its bound; this says so.
/** @import { Settings, Tab } from "./types.d.ts" */
import { offer } from "./offer.js";
import { boundWords } from "./options.js";
import { happen } from "./rooms.js";
import { clamp, el, find } from "../../viz/web/base.js";

const NAMES = { t: "temperature", k: "top_k", p: "top_p", seed: "seed", n: "max_new_tokens" };

/** The line in a number's block that reports its bound. */
function lineOf(block) {
  let line = block.querySelector(":scope > .pg-bound");
  if (!line) block.append(line = el("p", { class: "pg-bound pg-help", role: "status" }));
  return line;
}
const blockOf = (field) => field.closest(":is(.pg-panel, #change-panel) .block[id]");

/** Hear what is typed into the sliders' numbers. */
export const hearNumbers = () => document.addEventListener("input", ({ target }) => {
  const block = target instanceof HTMLInputElement && target.type === "number" ? blockOf(target) : null;
  const range = block && find("input[type=range]", block);
  if (!range) return;
  const { value } = /** @type {HTMLInputElement} */ (target), asked = Number(value);
  const set = clamp(asked, Number(range.min), Number(range.max));
  lineOf(block).textContent = asked === set || value === "" ? "" : boundWords(asked, range.min, range.max, set);
}, true);

/** The name of a setting, in words. declared: the options that may include it. */
const words = (name, declared = []) => (declared.find((option) => option.name === name)?.label
  || name.replaceAll("_", " ")).toLowerCase();

/**
 * now: the controls that the address has set. Values that it asked for out of range are named below the buttons.
 * @type {(room: Tab, now: Settings) => void}
 */
export function sayBounds(room, now) {
  const query = new URLSearchParams(location.search);
  const { drafter, options: set } = now.pair ? JSON.parse(now.pair) : { options: {} }, said = [];
  const declared = drafter ? offer.drafters[drafter].options : [];
  if ((query.get("tab") || "watch") !== room) return;
  const other = (asked, value) => asked !== null && asked !== "" && Number.isFinite(Number(asked))
    && Number(asked) !== Number(value);
  for (const [short, name] of Object.entries(NAMES)) if (other(query.get(short), now[name]))
    said.push(`${words(name)} ${query.get(short)} was set to ${now[name]}`);
  for (const [name, value] of Object.entries(set))
    if (typeof value === "number" && other(query.get(`o.${name}`), value))
    said.push(`${words(name, declared)} ${query.get(`o.${name}`)} was set to ${value}`);
  if (said.length) happen(room, { kind: "said", message: `The link asked for what is out of range: ` +
    `${said.join(", ")}.` });
}

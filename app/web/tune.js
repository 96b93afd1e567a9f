// The Tune tab: what its drawing asks of the page, and the row of tools under it.
/** @import { Component } from "./types.d.ts" */
/** @import { TuneHost, WatchWish } from "../../viz/web/tune/types.d.ts" */
import { addressWith } from "./address.js";
import { go, onMove } from "./history.js";
import { offer } from "./offer.js";
import { feed, happen, stateOf, traceOf, viewOf } from "./rooms.js";
import { tellLink } from "./rows.js";
import { saveText, toolButton } from "./tools.js";
import { dropArea } from "./tune-ask.js";
import { el } from "../../viz/web/base.js";
import { keptLines } from "../../viz/web/tune/record.js";

const ROOM = "tune", NAME = "draftscope-tuning.ndjson", OURS = /^\s*\{"kind": ?"(tuning|cost|acceptance|setting)"/;
let server = /** @type {Component["server"]} */ ({});   // functions of the server, once the row of tools is there

/** The options of a setting, with its size, under the name that the drafter gives it. */
function optionsOf({ drafter, options = {}, size = null }) {
  const sized = offer.drafters[drafter].options.find((option) => option.auto);
  return sized && size && options[sized.name] === undefined ? { ...options, [sized.name]: size } : options;
}

/**
 * The address of the run that shows a setting, on the prompt of the answer or that of the setting itself; null where
 * this page lacks the drafter, or the record has no prompt.
 * @param {WatchWish & { size?: number }} wish
 */
function watchAddress(wish) {
  const { head, answer } = viewOf(ROOM).record();
  const link = answer?.preset_link || /** @type {Partial<WatchWish>} */ ({});
  const prompt = wish.prompt ?? link.prompt, sampling = Object(head?.sampling);
  if (!Object.hasOwn(offer.drafters, wish.drafter) || typeof prompt !== "string") return null;
  const pair = { drafter: wish.drafter, options: optionsOf(wish), verifier: wish.verifier || "", rule_options: {} };
  return addressWith("watch", { prompt, pair: JSON.stringify(pair), models: head?.family || "",
    temperature: wish.temperature ?? link.temperature ?? sampling.temperature, top_k: sampling.top_k,
    top_p: sampling.top_p, seed: wish.seed ?? link.seed ?? sampling.seed, max_new_tokens: head?.new_tokens });
}

/** @type {TuneHost} */
export const tuneHost = {
  get machines() { return offer.machines; },
  get engines() { return offer.engines; },
  title: (key) => (Object.hasOwn(offer.drafters, key) ? offer.drafters[key].title : key),
  watch(wish, words) {
    const query = watchAddress(wish);
    return query && el("a", { href: `?${query}`, text: words, onclick(event) {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      go("watch", query);
    } });
  },
  exported: (engine) => server.tune_export({ record: keptLines(traceOf(ROOM)), engine }),
  estimated: (wish) => server.tune_estimate({ record: keptLines(traceOf(ROOM)), ...wish }),
  five: (counts) => server.tune_five(counts),
};

/**
 * Once the tab is seen, show the tuning that was made earlier, unless there is another.
 * @type {(element: Element) => void}
 */
function earlier(element) {
  const free = () => !traceOf(ROOM) && stateOf(ROOM) === "idle";
  const watcher = new IntersectionObserver(async ([seen]) => {
    if (!seen.isIntersecting) return;
    watcher.disconnect();
    const { lines } = free() ? await server.tune_earlier({}).catch(() => ({})) : {};
    if (lines && free()) feed(ROOM, lines);
  }, { rootMargin: "4000px" });
  watcher.observe(element);
}

/**
 * Save and open records, those of other engines too, and copy the link. c.props.limit: bytes of a file.
 * @type {(c: Component) => void}
 */
export function tuneTools(c) {
  server = c.server;
  const line = el("span", { class: "pg-said", role: "status" }), say = (words) => { line.textContent = words; };
  const save = toolButton("save-tuning", "Save the record", () => {
    const text = keptLines(traceOf(ROOM));
    if (text) saveText(text, NAME, "application/x-ndjson");
    say(text ? "Saved: one JSON object on each line." : "There is nothing to save yet.");
  });
  const open = dropArea("or drop it here: one of this page, of vLLM, SGLang or llama.cpp, or a trace.",
    "Open a record", "open-tuning", ".ndjson,.jsonl,.json,.txt,.prom,text/*", take);
  c.element.append(save, toolButton("tune-link", "Copy link", () => c.trigger("link")), line, open);
  tellLink(ROOM, say);
  if ([...new URLSearchParams(location.search).keys()].every((key) => /^(tab|__.*)$/.test(key))) earlier(c.element);
  onMove(ROOM, (query) => c.trigger("moved", { query }));

  async function take(file) {
    if (stateOf(ROOM) === "running") { say("Stop the measuring first."); return; }
    if (file.size > c.props.limit) { say(`That file is larger than ${Math.round(c.props.limit / 1e6)} MB.`); return; }
    say("Opening it…");
    const text = await file.text();
    let answer;
    if (OURS.test(text)) answer = { lines: text.endsWith("\n") ? text : `${text}\n` };
    else try { answer = await server.tune_import({ name: file.name, text }); } catch {
      answer = { error: "The server did not answer; try again." };
    }
    say(answer.error || `Opened: ${file.name.slice(0, 80)}. Nothing runs here.`);
    if (answer.error) return;
    happen(ROOM, { kind: "cleared" });
    feed(ROOM, answer.lines);
  }
}

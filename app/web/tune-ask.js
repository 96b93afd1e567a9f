// The prompts of a tuning: those of this page by their kinds, pasted ones, or a file, which the browser reads.
// The value is JSON, a TunePrompts.
/** @import { Component, TunePrompts } from "./types.d.ts" */
import { onModels } from "./choices.js";
import { offer } from "./offer.js";
import { el, freshId, writeText } from "../../viz/web/base.js";

const SOURCES = [["ours", "Prompts of this page"], ["pasted", "Paste your own"], ["file", "From a file"]];
const ABOUT = {
  ours: "A few prompts of each kind.",
  talks: "A few turns of each kind, since this model answers: code, sums, letters, summaries and others.",
  pasted: "One on each line; or, where there is an empty line, separated by empty lines.",
  file: "JSONL or CSV with “prompt” or “text” (and “kind”), or plain text with one on each line.",
};

/**
 * An area onto which files are dropped, with a button for those who do not drop. taken(file): a file that was chosen.
 * @type {(words: string, button: string, id: string, accept: string, taken: (file: File) => void) => HTMLElement}
 */
export function dropArea(words, button, id, accept, taken) {
  const file = el("input", { type: "file", id, accept, class: "pg-file", tabindex: "-1", "aria-label": button });
  file.addEventListener("change", () => {
    const [chosen] = file.files;
    file.value = "";
    if (chosen) taken(chosen);
  });
  const choose = el("button", { type: "button", class: "pg-tool", text: button, onclick: () => file.click() });
  const area = el("div", { class: "pg-drop" }, choose, file, el("span", { text: words }));
  area.addEventListener("dragover", (event) => { event.preventDefault(); area.toggleAttribute("data-over", true); });
  area.addEventListener("dragleave", () => area.removeAttribute("data-over"));
  area.addEventListener("drop", (event) => {
    event.preventDefault();
    area.removeAttribute("data-over");
    const [dropped] = event.dataTransfer.files;
    if (dropped) taken(dropped);
  });
  return area;
}

/**
 * c.props: kinds: [[key, words]], the kinds of the page's prompts; most: characters that may be sent.
 * @type {(c: Component) => void}
 */
export function tuneAsk(c) {
  /** @type {TunePrompts} */
  let now, written = "", talks = false;
  const id = freshId("tune"), about = el("p", { class: "pg-help", id: `${id}-about` });
  const said = el("p", { class: "pg-alarm", role: "alert" });
  const sources = SOURCES.map(([key, words]) => {
    const input = el("input", { type: "radio", name: id, value: key, onchange: () => set({ source: key }) });
    return { input, element: el("label", {}, input, words) };
  });
  const kinds = c.props.kinds.map(([key, words]) => {
    const input = el("input", { type: "checkbox", value: key, onchange: () =>
      set({ kinds: kinds.filter((one) => one.input.checked).map((one) => one.input.value) }) });
    return { input, element: el("label", {}, input, words) };
  });
  const ours = el("fieldset", { class: "pg-tune-kinds" },
    el("legend", { class: "pg-hidden", text: "Kinds of prompts" }), ...kinds.map((one) => one.element));
  const text = el("textarea", { id: "tune-prompts", rows: 5, "aria-label": "Your prompts",
    "aria-describedby": about.id, spellcheck: "false", oninput: () => set({ text: text.value, name: "" }) });
  const every = el("input", { type: "checkbox", id: "tune-all", onchange: () => set({ all: every.checked }) });
  const all = el("label", { class: "pg-tune-all" }, every, "Try every drafter that can run: several times as long");
  const which = el("p", { class: "pg-help", role: "status" });
  const file = el("div", {}, dropArea("or drop it here.", "Choose a file", "tune-file",
    ".jsonl,.ndjson,.csv,.txt,text/*", take), which);
  const places = { ours, pasted: text, file };
  c.element.append(el("fieldset", { class: "pg-tune-ask" }, el("legend", { text: "Prompts" }),
    el("div", { class: "pg-tune-sources" }, ...sources.map((one) => one.element)), about, ours, text, file, all, said));

  async function take(chosen) {
    if (chosen.size > c.props.most) {
      writeText(said, `${chosen.name.slice(0, 80)} is larger than ${Math.round(c.props.most / 1000)} kB, the most that `
        + "this page takes; the command line takes more.");
      return;
    }
    set({ source: "file", text: await chosen.text(), name: chosen.name.slice(0, 200) });
  }
  function set(change) {
    // a file's text is none that was typed
    if (change.source === "pasted" && now.name) Object.assign(change, { text: "", name: "" });
    now = { ...now, ...change };
    written = JSON.stringify(now);
    c.props.value = written;
    c.trigger("edited");
    show();
  }
  function show() {
    writeText(said, "");
    for (const { input } of sources) input.checked = input.value === now.source;
    for (const { input } of kinds) input.checked = now.kinds.includes(input.value);
    every.checked = now.all;
    writeText(about, ABOUT[now.source === "ours" && talks ? "talks" : now.source]);
    for (const [key, place] of Object.entries(places)) place.hidden = key !== now.source;
    ours.hidden ||= talks;
    if (now.source === "pasted" && text.value !== now.text) text.value = now.text;
    writeText(which, now.name ? `${now.name}, ${now.text.length.toLocaleString("en")} characters.` : "No file yet.");
  }
  function come() {
    if (c.props.value === written) return;
    written = c.props.value;
    now = JSON.parse(written);
    show();
  }
  c.watch("value", come);
  come();
  onModels("tune", (family) => { talks = offer.chat.includes(family); show(); });
}

// The setting as other engines take it.
/** @import { TuneHost, TuningRecord } from "./types.d.ts" */
import { el, writeText } from "../base.js";

/** @type {(host: TuneHost) => { element: HTMLElement, show(record: TuningRecord): void }} */
export function takeAlong(host) {
  const said = el("p", { class: "ln-quiet", role: "status" }), text = el("code"), notes = el("ul");
  const copy = el("button", { type: "button", class: "ln-button", text: "Copy", async onclick() {
    try {
      await navigator.clipboard.writeText(text.textContent);
      writeText(said, "Copied.");
    } catch { writeText(said, "This browser does not let a page copy; select the text."); }
  } });
  const result = el("div", { class: "tn-export", hidden: true },
    el("pre", { tabindex: 0, role: "group", "aria-label": "The setting" }, text), copy, notes);
  const button = ([engine, name]) => el("button",
    { type: "button", class: "ln-button", "data-engine": engine, text: name, onclick: () => take(engine, name) });
  const element = el("section", { class: "tn-card ds-card", hidden: true },
    el("h3", { text: "Take it to your engine" }),
    el("p", { class: "ln-quiet", text: "What is kept depends on this pair of models and these prompts, and the number "
      + "of tokens on what passes cost on this machine: measure again where either changes." }),
    el("div", { class: "ln-buttons" }, ...host.engines.map(button)), said, result);

  async function take(engine, name) {
    let answer;
    try { answer = await host.exported(engine); } catch { answer = { error: "The server did not answer; try again." }; }
    result.hidden = !answer.text;
    writeText(said, answer.error || `For ${name}:`);
    writeText(text, answer.text || "");
    notes.replaceChildren(...(answer.notes || []).map((note) => el("li", { text: note })));
  }
  return { element, show(record) { element.hidden = !record.answer; } };
}

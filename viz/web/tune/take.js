// The setting as other engines take it.
/** @import { TuneHost, TuningRecord } from "./types.d.ts" */
import { el, writeText } from "../base.js";
import { PLAIN } from "./record.js";

const withoutTicks = (sentence) => sentence.replaceAll("\x60", "");

/** A text to take along, with a button that copies it. Above it stand how it was measured, and a warning. */
function taken(words, text, said, { measured = "", differs = "" } = {}) {
  const copy = el("button", { type: "button", class: "ln-button", text: "Copy", "aria-label": `Copy: ${words}`,
    async onclick() {
      try {
        await navigator.clipboard.writeText(text);
        writeText(said, "Copied.");
      } catch { writeText(said, "This browser does not let a page copy; select the text."); }
    } });
  return el("div", { class: "tn-export" }, el("p", { text: words }),
    measured && el("p", { text: withoutTicks(measured) }),
    differs && el("p", { class: "tn-busy", text: withoutTicks(differs) }),
    el("pre", { tabindex: 0, role: "group", "aria-label": words }, el("code", { text })), copy);
}

/**
 * The text as it is typed into a shell, for the engine whose setting is one JSON value.
 * @type {(engine: string, text: string) => string}
 */
const typed = (engine, text) => (engine === "vllm"
  ? `vllm serve TARGET --speculative-config '${text.replaceAll("'", "'\\''")}'` : text);

/** @type {(host: TuneHost) => { element: HTMLElement, show(record: TuningRecord, running: boolean): void }} */
export function takeAlong(host) {
  const said = el("p", { class: "ln-quiet", role: "status" }), result = el("div", { class: "tn-exports" });
  const button = ([engine, name]) => el("button",
    { type: "button", class: "ln-button", "data-engine": engine, text: name, onclick: () => take(engine, name) });
  const element = el("section", { class: "tn-card ds-card", id: "tune-export", hidden: true },
    el("h2", { text: "Take it to your engine" }), el("div", { class: "ln-buttons" }, ...host.engines.map(button)), said,
    result);
  let answered = "";

  async function take(engine, name) {
    let answer;
    try { answer = await host.exported(engine); } catch { answer = { error: "The server did not answer; try again." }; }
    writeText(said, answer.error || (answer.text ? "" : `${name} cannot be told this setting.`));
    result.replaceChildren(...[
      answer.text && taken(`For ${name}`, typed(engine, answer.text), said, answer),
      answer.notes?.length && el("ul", { class: "tn-notes" },
        ...answer.notes.map((note) => el("li", { text: withoutTicks(note) }))),
      answer.synthetic && taken(`Only to time a server: ${name} then keeps drafted tokens by chance, as often as here. `
        + "Its rates are the chances that the first n tokens are all kept.", typed(engine, answer.synthetic), said),
    ].filter(Boolean));
  }
  return { element, show({ answer }, running) {
    element.hidden = running || !answer?.why || answer.drafter === PLAIN;
    if (answered !== answer?.sentence) { result.replaceChildren(); writeText(said, ""); }
    answered = answer?.sentence || "";
  } };
}

// Saving and opening traces and races. Files are read and written by the browser.
/** @import { Component, Tab } from "./types.d.ts" */
import { follow, putAway, traceOf } from "./rooms.js";
import { fileName, finished } from "./runs.js";
import { el } from "../../viz/web/base.js";
import { saveBlob } from "../../viz/web/slides/slide.js";

/** @type {(text: string, name: string, type: string) => void} */
export const saveText = (text, name, type) => saveBlob(new Blob([text], { type }), name);

const WORDS = {
  watch: { thing: "trace", wait: "The run must come to its end, or be stopped, before it can be saved.",
    back: "Back to my run" },
  compare: { thing: "race", wait: "The race must come to its end, or be stopped, before it can be saved.",
    back: "Back to my race" },
};
/** @type {(id: string, text: string, onclick: () => void) => HTMLElement} */
export const toolButton = (id, text, onclick) => el("button", { type: "button", class: "pg-tool", id, text, onclick });

/**
 * Buttons that save and open a room's trace, as elements for its row of tools. c: the object that gr.HTML hands over,
 * with an event "opened"; say(words): reports the result; exported(text): the server's {page} or {error}.
 * @param {Component} c
 * @param {Tab} room
 * @param {(words: string) => void} say
 * @param {(text: string) => Promise<any>} exported
 */
export function fileTools(c, room, say, exported) {
  const { thing, wait, back } = WORDS[room], before = room === "watch" ? "" : "race-";
  const file = el("input", { type: "file", accept: ".ndjson,.jsonl,application/x-ndjson", class: "pg-file",
    "aria-label": `A ${thing} file to open`, id: `open-${thing}`, tabindex: "-1" });

  const current = (done) => () => {
    const text = traceOf(room);
    if (text && finished(text)) done(text);
    else say(wait);
  };
  const save = current((text) => {
    saveText(text, fileName(text, "ndjson"), "application/x-ndjson");
    say("Saved.");
  });
  const savePage = current(async (text) => {
    say("Making the page…");
    try {
      const answer = await exported(text);
      if (answer.page) saveText(answer.page, fileName(text, "html"), "text/html");
      say(answer.page ? "Saved: one file, it replays without this server." : answer.error);
    } catch { say("The page could not be made; try again."); }
  });

  file.addEventListener("change", async () => {
    const chosen = file.files[0];
    file.value = "";
    if (!chosen) return;
    if (chosen.size > c.props.limit) {
      say(`That file is larger than ${Math.round(c.props.limit / 1e6)} MB.`);
      return;
    }
    say("");
    c.trigger("opened", { text: await chosen.text() });
  });

  const mine = toolButton(`${before}back`, back, () => c.trigger("opened", { text: putAway(room), back: true }));
  follow(room, () => { mine.hidden = !putAway(room); });
  return [toolButton(`save-${thing}`, `Save ${thing}`, save),
    toolButton(`${before}save-page`, "Save as a page", savePage),
    toolButton(`${before}open`, `Open a ${thing}`, () => file.click()), file, mine];
}

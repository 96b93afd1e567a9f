// The rows of tools under the pictures of Watch and Compare: files, and the link that brings another visitor here.
/** @import { Component, Tab } from "./types.d.ts" */
import { addressOf } from "./address.js";
import { onMove, put } from "./history.js";
import { keptBefore } from "./own-models.js";
import { namedControls, traceOf } from "./rooms.js";
import { raceThis } from "./shared.js";
import { slidePanel } from "./slide.js";
import { fileTools, toolButton } from "./tools.js";
import { el, whenShown } from "../../viz/web/base.js";

const says = {};   // by room: what tells of its link
/** @type {(room: Tab, say: (words: string) => void) => void} */
export const tellLink = (room, say) => { says[room] = say; };

function row(c, room, linkId, exported, ...more) {
  const line = el("span", { class: "pg-said", role: "status" }), say = (words) => { line.textContent = words; };
  says[room] = say;
  const slide = slidePanel(c, room);
  c.element.append(...more, ...fileTools(c, room, say, exported),
    toolButton(linkId, "Copy link", () => c.trigger("link")),
    slide.button, line, slide.panel);
}

/** @type {(c: Component) => void} */
export function tools(c) {
  row(c, "watch", "copy-link", (text) => c.server.export_page(text),
    toolButton("race-this", "Race this against …", raceThis));
  onMove("watch", (query) => c.trigger("moved", { query }));
  if (keptBefore()) c.trigger("returned", { token: keptBefore() });
}

/**
 * Also tells the server when the tab comes on the screen, and its address; the server sends the finished race.
 * @type {(c: Component) => void}
 */
export function raceTools(c) {
  row(c, "compare", "race-link", (text) => c.server.export_race(text));
  onMove("compare", (query) => c.trigger("moved", { query }));
  whenShown(c.element, () => {
    if (!traceOf("compare")) c.trigger("seen", { query: Object.fromEntries(new URLSearchParams(location.search)) });
  });
}

/**
 * Copy link, with the values of a room's example and controls, in their order.
 * @type {(room: Tab, values: any[]) => Promise<void>}
 */
export async function link(room, values) {
  const now = namedControls(room, values), query = addressOf(room, now);
  const text = `${location.origin}${location.pathname}?${query}`;
  try {
    put(query);
    await navigator.clipboard.writeText(text);
    if (room === "tune") says[room](query.has("prompts") || query.has("kinds")
      ? "Link copied: it brings these settings." : "Link copied: it brings these settings, without your prompts.");
    else says[room](query.has("step") ? "Link copied: it brings this run, this step and the chosen token."
      : "Link copied.");
  } catch { says[room]("The link stands in the address bar."); }
}

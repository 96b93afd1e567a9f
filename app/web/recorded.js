// The requests that a serving engine records in the host's folder: a list that grows, whose requests open on Watch.
/** @import { Component } from "./types.d.ts" */
import { beginRun } from "./run.js";
import { el, setAttributes, writeText } from "../../viz/web/base.js";

const EVERY = 2000;   // ms between two looks
const COLUMNS = ["Request", "Began", "Drafter", "Steps", "Accepted a step"];
const STATES = { running: "being written", done: "", "broken off": "broken off" };

const clock = (began) => {
  const time = new Date(began);
  return Number.isNaN(time.getTime()) ? "" : time.toLocaleTimeString("en-GB");
};

/** @type {(c: Component) => void} */
export function recorded(c) {
  const body = el("tbody", {}), count = el("span", { class: "pg-help" });
  const heads = COLUMNS.map((text) => el("th", { scope: "col", text }));
  const table = el("table", {}, el("thead", {}, el("tr", {}, ...heads)), body);
  const none = el("p", { class: "pg-help",
    text: "No request has been recorded yet; this list looks every two seconds." });
  c.element.append(el("details", { class: "pg-recorded", open: true },
    el("summary", {}, el("strong", { text: "Recorded requests" }), count),
    none, el("div", { class: "pg-recorded-rows", tabindex: "0", role: "region", "aria-label": "Recorded requests" },
      table)));
  const rows = new Map();   // by the name of the record
  let shown = "";

  function open(name) {
    shown = name;
    rows.forEach(mark);
    beginRun("watch");
    c.trigger("chosen", { name });
  }

  function mark({ line }, name) { setAttributes(line, { "aria-current": name === shown ? "true" : null }); }

  function rowOf(name) {
    const button = el("button", { type: "button", class: "pg-recorded-open", onclick: () => open(name) });
    const state = el("span", { class: "pg-recorded-state" });
    const cells = COLUMNS.slice(1).map(() => el("td", {}));
    const line = el("tr", { "data-name": name }, el("th", { scope: "row" }, button, state), ...cells);
    return { line, button, state, cells };
  }

  function draw(requests) {
    none.hidden = requests.length > 0;
    table.hidden = !requests.length;
    writeText(count, requests.length ? ` ${requests.length === 50 ? "the newest 50" : requests.length}` : "");
    const names = new Set(requests.map(({ name }) => name));
    for (const [name, { line }] of rows) if (!names.has(name)) { line.remove(); rows.delete(name); }
    requests.forEach(({ name, request, began, drafter, steps, accepted, state }, place) => {
      if (!rows.has(name)) rows.set(name, rowOf(name));
      const row = rows.get(name);
      writeText(row.button, request);
      writeText(row.state, STATES[state] || "");
      setAttributes(row.line, { "data-state": state });
      const told = [clock(began), drafter, String(steps), accepted === null ? "–" : accepted.toFixed(2)];
      told.forEach((text, i) => writeText(row.cells[i], text));
      if (body.children[place] !== row.line) body.insertBefore(row.line, body.children[place] || null);
      mark(row, name);
    });
  }

  async function look() {
    if (document.visibilityState === "visible" && c.element.clientWidth)
      try { draw(await c.server.recorded_requests(null)); } catch { /* the server is busy, or away */ }
    setTimeout(look, EVERY);
  }
  look();
}

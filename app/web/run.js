// A run from the visitor's side: the line under the buttons, the buttons, and what a click on them does.
/** @import { Component, Tab } from "./types.d.ts" */
import { pressed } from "./differences.js";
import { hearNewest } from "./newest.js";
import { happen, room, stateOf } from "./rooms.js";
import { saying } from "./saying.js";
import { el, find, stillWanted, targetOf, whenThere, writeText } from "../../viz/web/base.js";

const GRACE = 300;   // ms in which the last report of an answered request arrives

/**
 * The buttons of each tab, by what they do.
 * @type {Record<Tab, Record<string, string>>}
 */
const IDS = {
  watch: { run: "run", pause: "pause", step: "step", stop: "stop" },
  compare: { run: "race", pause: "race-pause", stop: "race-stop" },
  learn: {},
  tune: { run: "measure", stop: "tune-stop" },
};

const TABS = /** @type {Tab[]} */ (Object.keys(IDS));

/**
 * The line under the buttons: tells what is going on. Its value is what the server reports: {state, message, n}.
 * @type {(tab: Tab, c: Component) => void}
 */
export function status(tab, c) {
  const r = room(tab);
  const line = el("p", { class: "pg-say", role: "status" });
  const alarm = el("p", { class: "pg-alarm", role: "alert" });
  c.element.append(line, alarm);
  r.trigger = c.trigger;
  r.heard.push(() => {
    const { state, message } = r.run, bad = state === "error";
    writeText(line, bad ? "" : message || saying(tab, state, r.trace));
    writeText(alarm, bad ? message : "");
    setTimeout(() => buttons(tab));   // not within the click that caused it: it must still reach the button
  });
  hearNewest(c, (said) => report(tab, said));
  report(tab, JSON.parse(c.props.value));
  for (const id of Object.values(IDS[tab])) whenThere(`#${id}`, () => buttons(tab));
}

/** The server reports on a run. What was wished of it meanwhile is asked now, if there still is a run. */
function report(tab, { state, message }) {
  const r = room(tab), { wish } = r.run;
  happen(tab, { kind: "reported", state, message });
  if (wish && state === "running" && !r.run.wish) r.trigger(wish);
}

/**
 * Ask the server to pause or stop the run. A click that comes before the server knows of the run waits.
 * @type {(tab: Tab, wish: "ask_stop" | "ask_pause") => void}
 */
export function askServer(tab, wish) {
  const r = room(tab);
  if (r.run.unheard) happen(tab, { kind: "wished", wish });
  else r.trigger(wish);
}

/**
 * An event has ended, well or badly. If it ended without a word from the run, say so.
 * @type {(tab: Tab) => void}
 */
export function over(tab) {
  const r = room(tab);
  r.events = Math.max(0, r.events - 1);
  setTimeout(() => { if (!r.events) happen(tab, { kind: "ended" }); }, GRACE);
}

/**
 * A run has been asked for: until the server reports on it, requests to pause or stop it wait.
 * @type {(tab: Tab) => void}
 */
export function beginRun(tab) {
  const r = room(tab);
  reveal(tab);
  r.events += 1;
  if (r.view && r.view.goto) r.view.goto(Infinity);   // what was still playing is over
  happen(tab, { kind: "begun" });
}

/** Bring the picture into view if it is off the screen, as on a phone. */
function reveal(tab) {
  const card = document.querySelector(`#${tab}-view .ds-card`);
  if (!card || !card.clientHeight) return;
  const { top, bottom } = card.getBoundingClientRect();
  if (bottom < 0 || top > innerHeight) card.scrollIntoView({ behavior: stillWanted() ? "auto" : "smooth" });
}

function buttons(tab) {
  const state = stateOf(tab), busy = state === "running", paused = state === "paused", ids = IDS[tab];
  const held = Object.values(ids).find((id) => document.activeElement?.id === id);
  for (const [word, id] of Object.entries(IDS[tab])) {
    const button = find(`#${id}`);
    if (!button) continue;                         // the page is still being built
    button.disabled = { run: busy, pause: !(busy || paused), step: busy, stop: !(busy || paused) }[word];
    if (word === "pause") label(button, paused ? "Resume" : "Pause");
  }
  // the focus goes on to a button that can be pressed, and comes back
  if (held && find(`#${held}`).disabled) {
    const others = [ids.pause, ids.stop, ids.run].map((id) => id && find(`#${id}`));
    const next = others.find((one) => one && !one.disabled);
    next?.focus();
    lent = next ? { from: held, to: next.id } : null;
  } else if (lent && document.activeElement?.id !== lent.to) lent = null;
  else if (lent && !find(`#${lent.from}`).disabled) {
    find(`#${lent.from}`).focus();
    lent = null;
  }
}
/** The button that had the focus when it could no longer be pressed, and the one that has it meanwhile: their ids. */
let lent = /** @type {{ from: string, to: string } | null} */ (null);

function label(button, words) {
  const text = Array.from(button.childNodes).find((n) => n.nodeType === Node.TEXT_NODE && n.nodeValue.trim());
  if (text && text.nodeValue.trim() !== words) text.nodeValue = words;
}

/**
 * A click on a button of a tab. On the page a run begins with the click; the server's report follows. Pause and Resume
 * are one button with two meanings; the one that the reader saw at the click counts.
 */
function press(tab, id) {
  const ids = IDS[tab], { trigger } = room(tab), state = stateOf(tab);
  if (lent?.to === id) lent = null;              // it was meant
  if (id === ids.run || (id === ids.step && state !== "paused")) pressed(tab);
  if (id === ids.run || id === ids.step) beginRun(tab);
  if (id === ids.stop) askServer(tab, "ask_stop");
  if (id !== ids.pause) return;
  if (state === "running") askServer(tab, "ask_pause");
  else if (state === "paused") { beginRun(tab); trigger("ask_resume"); }
}

/**
 * Hear the clicks on the buttons of all tabs, before anybody else does.
 * @type {() => void}
 */
export function hearButtons() {
  document.addEventListener("click", (event) => {
    const button = targetOf(event)?.closest("button");
    if (!button || button.disabled) return;
    for (const tab of TABS) {
      if (Object.values(IDS[tab]).includes(button.id) && room(tab).trigger) press(tab, button.id);
    }
  }, true);
}

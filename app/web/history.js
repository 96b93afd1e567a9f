// The address and the browser's history: the example or tab that the address names, a link's requests beyond the
// controls, and the way back.
/** @import { Settings, Tab } from "./types.d.ts" */
/** @import { View } from "../../viz/web/view-types.d.ts" */
import { addressOf } from "./address.js";
import { exampleOf } from "./examples.js";
import { atRest, controlsOf, exampleShown, setExample, traceOf, viewOf } from "./rooms.js";
import { finished } from "./runs.js";
import { find, targetOf } from "../../viz/web/base.js";

const asked = () => new URLSearchParams(location.search);
const OTHERS = ["compare", "tune", "methods", "learn"];
const roomOf = (query) => (OTHERS.includes(query.get("tab")) ? query.get("tab") : "watch");
const tab = (room) => find(`#rooms [role=tab][data-tab-id='${room}']`);
const usual = {};      // by room: the example that is shown where no other is asked for
const shown = {};      // by room: what of it is open beside an example, as the address names it
const movers = {};     // by room: what brings the state of an address
let moving = null;     // the room that an address leads to, until it is open
let led = false;       // whether the page, not the visitor, is opening a tab
const awaited = {};    // by room: addresses whose state the server has yet to send
const REST = 400;   // ms without a change; browsers refuse an address that is written too often
const timers = {};  // by room
// ms until controls have taken over what was sent, and until a server is known to be silent
const TAKEN = 500, LOST = 30_000;
let timer = 0;
const RUNS = { watch: "run", compare: "race" };
let due = null;     // the room whose settings are run once they are there
const first = asked();
const goalOf = (query) => (roomOf(query) === "watch"
  ? { run: query.get("run") === "1", step: Number(query.get("step")), node: query.get("node") } : {});
let wish = first;   // the address of the goal
const BEYOND = /^(__.*|run|step|node|tab)$/;   // of its parts, those that are no controls
/** @type {{ run?: boolean, step?: number, node?: string, preset?: string }} */
let goal = goalOf(first);   // what an address asks for beyond the controls, until it is done

function push(room, name) {
  if (!location.protocol.startsWith("http")) return;   // only an address on a server can be followed
  const query = new URLSearchParams();
  if (first.has("__theme")) query.set("__theme", first.get("__theme"));
  if (room !== "watch") query.set("tab", room);
  if (name) query.set("preset", name);
  for (const [key, value] of Object.entries(shown[room] || {})) if (value) query.set(key, value);
  history.pushState(null, "", `${location.pathname}${query.size ? `?${query}` : ""}`);
}

/** Whether the address is that of this room, and its state is here. */
const onScreen = (room) => moving !== room && roomOf(asked()) === room;

/**
 * Replace the address in the address bar. The parameters of the server, such as the theme, are kept.
 * @type {(query: URLSearchParams) => void}
 */
export function put(query) {
  for (const [name, value] of new URLSearchParams(location.search)) if (name.startsWith("__")) query.set(name, value);
  const link = `${location.pathname}?${query}`;
  if (link !== location.pathname + location.search) history.replaceState(null, "", link);
}

/**
 * Something in a room has changed: once nothing moves there, the address bar follows.
 * @type {(room: Tab) => void}
 */
export function settle(room) {
  clearTimeout(timers[room]);
  timers[room] = setTimeout(() => {
    const now = controlsOf(room);
    if (!now || !atRest(room) || !onScreen(room) || !location.protocol.startsWith("http")) return;
    try { put(addressOf(room, now)); } catch { /* the browser refuses it: the old one stays */ }
  }, REST);
}

/**
 * A room shows this example now; the address follows, so that the back button leads to the previous one.
 * @type {(room: Tab, name: string) => void}
 */
export function remember(room, name) {
  const before = setExample(room, name);
  if (before === undefined) usual[room] = name;
  const now = asked();
  if (before === undefined || !name || before === name) return;
  if (moving && (moving === room || roomOf(now) !== room)) return;   // an address has brought it
  if (roomOf(now) === room && (now.get("preset") || usual[room]) === name && !now.has("prompt")) return;
  if (roomOf(now) === room || room === "watch") push(room, name);
}

/**
 * Note what a room shows now. query: the parts of its address, by name.
 * @type {(room: Tab, query: Record<string, any>) => void}
 */
export const showing = (room, query) => { shown[room] = query; };

/**
 * bring(query): asks the server for the state of an address.
 * @type {(room: Tab, bring: (query: Record<string, string>) => void) => void}
 */
export function onMove(room, bring) {
  movers[room] = bring;
  if (moving !== room) return;
  if (roomOf(asked()) === room) move();
  else moving = null;   // the visitor has left for another tab
}

/** Open a tab on the page's own account. */
function show(room) {
  led = true;
  if (tab(room) && tab(room).getAttribute("aria-selected") !== "true") tab(room).click();
  led = false;
}

function move() {
  const room = roomOf(asked());
  moving = room;
  // back and forward lead to what was there; only a link runs anything
  wish = asked();
  goal = { ...goalOf(wish), run: false, preset: wish.get("preset") };
  show(room);
  if (room !== "methods" && !movers[room]) return;         // its tab is being built
  const answers = ["watch", "compare", "tune"].includes(room);
  if (answers) awaited[room] = (awaited[room] || 0) + 1;
  if (movers[room]) movers[room](Object.fromEntries(asked()));
  comeToRest(room, answers ? LOST : TAKEN);
}
function comeToRest(room, after) {
  clearTimeout(timer);
  timer = setTimeout(() => {
    moving = null;
    awaited[room] = 0;
    settle(room);
    const run = RUNS[room];
    if (due === room && !unready(run)) document.getElementById(run).click();
    due = null;
  }, after);
}
/**
 * The server has sent the state of an address. Only after the last of them may the address bar follow the controls.
 * @type {(room: Tab) => void}
 */
export function moved(room) {
  awaited[room] = Math.max(0, (awaited[room] || 0) - 1);
  if (moving === room && !awaited[room]) comeToRest(room, TAKEN);
}

/**
 * Open a room with the settings of this address, and run them.
 * @type {(room: Tab, query: URLSearchParams) => void}
 */
export function go(room, query) {
  const theme = asked().get("__theme");
  if (theme) query.set("__theme", theme);
  history.pushState(null, "", `${location.pathname}?${query}`);
  due = room;
  move();
}

/**
 * Open the tab that the address names. If the server opened it, Gradio would copy the properties of every component
 * on the page.
 * @type {() => void}
 */
export const openRoom = () => show(roomOf(first));

/** Hear the browser's back and forward, and the choice of a tab. */
export function hearHistory() {
  addEventListener("popstate", () => { due = null; move(); });
  document.addEventListener("click", (event) => {
    const chosen = targetOf(event)?.closest("#rooms [role=tab]");
    if (!chosen || led) return;
    const room = /** @type {Tab} */ (chosen.getAttribute("data-tab-id"));
    if (room === roomOf(asked())) return;
    push(room, exampleShown(room));
    settle(room);
  }, true);
}

/**
 * Watch has come to rest: carry out the link's request, once. agree: whether the picture matches the controls.
 * @type {(room: Tab, agree: boolean) => void}
 */
export function arrive(room, agree) {
  if (room !== "watch") return;
  if (!agree) {
    if (goal.run && !unready("run")) { goal.run = false; document.getElementById("run").click(); }
    return;
  }
  const { step, node, preset } = goal, view = viewOf("watch");
  // the picture before is still on the screen
  if (!finished(traceOf("watch")) || (preset && preset !== exampleOf("watch", controlsOf("watch"), preset))) return;
  Object.assign(goal, { run: false, step: 0 });
  seekStep(view, { step, node });
}
/**
 * Show the step, counted from 1, and the token that an address names; nothing where it names none.
 * @type {(view: View, query: { step?: string | number, node?: string | null }) => void}
 */
export function seekStep(view, { step, node }) {
  if (!(Number(step) >= 1)) return;
  view.goto(Number(step) - 1);
  if (node === "final" || /^-?\d+$/.test(node || "")) view.select(node === "final" ? node : Number(node));
}
/**
 * Controls have changed. If they are no longer as the address sets them, the address's request no longer counts. A slow
 * page takes over the address's values one after the other; such a change is not the visitor's.
 * @type {(room: Tab, now: Settings) => void}
 */
export function leaveAddress(room, now) {
  if (moving || room !== "watch") return;
  const query = addressOf(room, now), set = [...wish].filter(([name]) => !BEYOND.test(name));
  if (set.some(([name, value]) => query.get(name) !== value)) goal = {};
}
const unready = (id) => { const button = find(`#${id}`); return !button || button.disabled; };

// The entry of the place without a server: the page's tabs over runs that were made earlier, without Tune, which
// measures. Runs and lessons lie in files beside the page, as scripts, because a page that was opened from a disk may
// load nothing else.
/** @import { Component } from "./types.d.ts" */
/** @import { View } from "../../viz/web/view-types.d.ts" */
import { cards } from "./cards.js";
import { daylight } from "./daylight.js";
import { hearHistory, moved, onMove, put, remember, seekStep } from "./history.js";
import { learn } from "./learn.js";
import { foot, masthead } from "./masthead.js";
import { methods } from "./methods.js";
import { takeOffer } from "./offer.js";
import { exampleShown } from "./rooms.js";
import { terms } from "./terms.js";
import { el, targetOf, whenShown } from "../../viz/web/base.js";
import { mountCompare } from "../../viz/web/compare.js";
import { mountWatch } from "../../viz/web/watch.js";

const ROOMS = { watch: "Watch", compare: "Compare", methods: "Methods", learn: "Learn" };
const REST = 400;   // ms without a change, after which the address follows the picture
const site = JSON.parse(document.getElementById("site").textContent);
takeOffer(site.offer);

/** What a file beside the page hands over, by its folder and name. */
const brought = new Map();
globalThis.DraftscopeSite = {
  /** @type {(folder: string, name: string, value: any) => void} */
  bring(folder, name, value) { brought.set(`${folder}/${name}`, value); },
};

/**
 * The content of a file beside the page. Rejects, with a sentence, where the site has no such file.
 * @type {(folder: "runs" | "lessons", name: string) => Promise<any>}
 */
function file(folder, name) {
  const key = `${folder}/${name}`;
  return new Promise((resolve, reject) => {
    const missing = () => reject(new Error(`This place has no file ${key}.js; is it copied whole?`));
    if (!site[folder].includes(name)) {
      reject(new Error(`There is no ${folder.slice(0, -1)} of this name here.`));
      return;
    }
    if (brought.has(key)) { resolve(brought.get(key)); return; }
    const script = el("script", { src: `${folder}/${encodeURIComponent(name)}.js`, onerror: missing, onload() {
      script.remove();
      if (brought.has(key)) resolve(brought.get(key)); else missing();
    } });
    document.head.append(script);
  });
}

/**
 * What gradio hands to a component of the page, without gradio. hear: by event.
 * @type {(element: HTMLElement, props: object, hear?: Record<string, () => void>,
 *   server?: Component["server"]) => Component}
 */
function component(element, props, hear = {}, server = {}) {
  const watched = [];
  const held = new Proxy(props, { set(target, name, value) {
    target[name] = value;
    for (const [property, told] of watched) if (property === name) told();
    return true;
  } });
  return { element, props: held, server, trigger: (event) => hear[event]?.(),
    watch: (property, told) => { watched.push([property, told]); } };
}

/**
 * A tab of finished runs: the strip of examples, a sentence on the one shown, and the picture.
 * mount(element, changed): the view. seek(view, query): shows the place that an address names. place(view): that place.
 * @type {(room: "watch" | "compare", examples: any[], mount: (element: Element, changed: () => void) => View,
 *   seek: (view: View, query: Record<string, string>) => void, place: (view: View) => Record<string, any>) => Element}
 */
function runs(room, examples, mount, seek, place) {
  const strip = el("div"), note = el("p", { class: "pg-note", "aria-live": "polite" });
  const alarm = el("p", { class: "pg-alarm", role: "alert" }), picture = el("div");
  const panel = el("div", { class: "pg-site-room" }, strip, note, alarm, picture);
  const known = new Map(examples.map((example) => [example.name, example])), first = examples[0].name;
  const listed = examples.filter((example) => example.listed);
  let wanted = "", timer = 0;
  const view = mount(picture, settle);
  const choice = component(strip, { cards: listed, value: first }, { chosen: () => show(choice.props.value, {}) });

  /** Write the example, and this place in its run, into the address. */
  function write(at) {
    const query = new URLSearchParams(room === "watch" ? {} : { tab: room });
    query.set("preset", wanted);
    for (const [name, value] of Object.entries(at)) if (value !== null) query.set(name, value);
    try { put(query); } catch { /* the browser refuses it: the old one stays */ }
  }
  /** The address follows the picture, once nothing has changed for a while. */
  function settle() {
    clearTimeout(timer);
    timer = setTimeout(() => {
      if (panel.clientWidth && !view.playing && wanted && exampleShown(room) === wanted) write(place(view));
    }, REST);
  }

  /** @type {(name: string, query: Record<string, string>) => Promise<void>} */
  async function show(name, query) {
    wanted = name;
    alarm.textContent = "";
    const example = known.get(name);
    let run;
    try { run = await file("runs", name); } catch (error) {
      if (wanted === name) alarm.textContent = error.message;
      return;
    }
    if (wanted !== name) return;
    note.replaceChildren(el("strong", { text: "Look for: " }), example.look_for);
    if (choice.props.value !== name) choice.props.value = example.listed ? name : "";
    remember(room, name);
    if (new URLSearchParams(location.search).get("preset") !== name) write({});
    view.feed(run.text);
    view.setState("done", "");
    if (view.prove) view.prove(run.checked || null);
    seek(view, query);
  }
  const bring = (query) => show(query.preset || first, query);

  onMove(room, (query) => bring(query).then(() => moved(room)));
  whenShown(panel, () => {
    cards(choice);
    const query = Object.fromEntries(new URLSearchParams(location.search));
    bring((query.tab || "watch") === room ? query : {});
  });
  if (room === "watch") chosenMethod = (name) => show(name, {});
  return panel;
}
let chosenMethod = /** @type {(name: string) => void} */ (() => {});

/** @type {(view: any, query: Record<string, string>) => void} */
function seekTime(view, { at }) {
  if (at !== undefined && Number.isFinite(Number(at))) view.seek(Number(at));
}

/**
 * What stands below the sentence at the head of each tab. column: holds both.
 * @type {Record<string, (column: Element) => Element>}
 */
const BUILD = {
  watch: () => runs("watch", site.examples,
    (element, changed) => mountWatch(element, { changed }), seekStep,
    ({ step, chosen }) => (step >= 0 ? { step: step + 1, node: chosen } : {})),
  compare: () => runs("compare", site.races,
    (element) => mountCompare(element, { about: (key) => (site.offer.drafters[key] || {}).summary }), seekTime,
    () => ({})),
  methods() {
    const panel = el("div"), shelf = component(panel, { ...site.methods, value: "" },
      { chosen: () => chosenMethod(shelf.props.value) });
    methods(shelf);
    return panel;
  },
  learn(column) {
    const place = el("div");
    column.append(place);
    const lesson = async (name) => {
      try { return await file("lessons", name); } catch (error) { return { error: error.message }; }
    };
    learn(component(place, { shelf: site.shelf, still: true }, {},
      { learn_lesson: lesson, learn_trace: async (name) => (await file("runs", name)).text }));
    return place;
  },
};

function build() {
  const asked = new URLSearchParams(location.search).get("tab"), head = el("div", { class: "pg-masthead-block block" });
  masthead(head, { name: site.name, line: site.line, tour: null });
  const tabs = new Map(), panels = new Map();
  const select = (room) => {
    for (const [name, tab] of tabs) {
      tab.setAttribute("aria-selected", String(name === room));
      tab.tabIndex = name === room ? 0 : -1;
      tab.classList.toggle("selected", name === room);
      panels.get(name).hidden = name !== room;
    }
    const panel = panels.get(room);
    if (panel.childElementCount) return;
    const lead = el("div", { class: "pg-lead-block" }), column = el("div", { class: "column" }, lead);
    panel.append(column);
    terms(lead, site.leads[room]);
    column.append(BUILD[room](column));
  };
  for (const [room, title] of Object.entries(ROOMS)) {
    tabs.set(room, el("button", { type: "button", role: "tab", id: `tab-${room}`, "data-tab-id": room, text: title,
      "aria-controls": `room-${room}`, onclick: () => select(room) }));
    panels.set(room, el("div",
      { role: "tabpanel", class: "tabitem", id: `room-${room}`, "aria-labelledby": `tab-${room}`, hidden: true }));
  }
  const row = el("div", { class: "tab-container", role: "tablist", "aria-label": "Parts of this place",
    onkeydown: turn }, ...tabs.values());
  /** Left and right lead to the tab beside. @type {(event: KeyboardEvent) => void} */
  function turn(event) {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key], all = [...tabs.values()];
    const at = all.indexOf(/** @type {any} */ (targetOf(event)));
    if (!by || at < 0) return;
    event.preventDefault();
    const next = all[(at + by + all.length) % all.length];
    next.focus();
    next.click();
  }
  const header = head.firstElementChild;
  if (site.live) header.append(el("a", { class: "pg-tool", href: site.live, text: "Run your own" }));
  header.append(daylight());
  const below = el("div");
  foot(below, site.foot);
  document.getElementById("place").append(head,
    el("div", { id: "rooms" }, el("div", { class: "tab-wrapper" }, row), ...panels.values()), below);
  hearHistory();
  select(asked in ROOMS ? asked : "watch");
}

/** Light or dark, as the address says; else as the reader's system is, also when that changes. */
function followDaylight() {
  const night = matchMedia("(prefers-color-scheme: dark)");
  const set = (dark) => document.body.classList.toggle("dark", dark);
  night.addEventListener("change", ({ matches }) => set(matches));
  const wish = new URLSearchParams(location.search).get("__theme");
  set(wish ? wish === "dark" : night.matches);
}

followDaylight();
build();

// Beside the figures: the run that they belong to, its comparison with plain decoding, and the mean tree to save.
/** @import { Component, Tab } from "./types.d.ts" */
import { follow, ranHere, stateOf, traceOf, viewOf } from "./rooms.js";
import { fileName, finished } from "./runs.js";
import { saveText } from "./tools.js";
import { el, writeText } from "../../viz/web/base.js";

const AGAIN = 1000;   // ms after which the server is asked whether it has measured
const OLD = " These are of the run before; those of this one are drawn when it is over.";

const askers = {};   // by room

/**
 * Have the figures of the finished run on the screen drawn, wherever the visitor is.
 * @type {(room: Tab) => void}
 */
export const drawFigures = (room) => { if (askers[room]) askers[room](true); };

/**
 * The place of the figures: they are asked for when it comes into the window, and marked while they are of a run other
 * than the one on the screen. The value is the last line of the trace that was drawn.
 * @type {(room: Tab, c: Component) => void}
 */
export function figuresOf(room, c) {
  const place = c.element.closest(".pg-figures-place"), said = el("span", { role: "status" });
  let here = false, asked = "";
  const last = () => traceOf(room).trimEnd().split("\n").at(-1);
  const ask = (anyway) => {
    if (!here && !anyway) return;
    const line = last();
    if (["running", "paused"].includes(stateOf(room)) || [asked, c.props.value].includes(line)) return;
    if (!finished(traceOf(room))) return;
    asked = line;
    c.trigger("asked");
  };
  const apply = () => {
    const figures = place.querySelector(".pg-figures"), line = figures && figures.querySelector(".pg-lead");
    const old = Boolean(c.props.value) && last() !== c.props.value;
    if (line) {
      if (!said.isConnected) line.append(said);
      figures.toggleAttribute("data-old", old);
      writeText(said, old ? OLD : "");
    }
    ask(false);
  };
  askers[room] = ask;
  new IntersectionObserver(([seen]) => { here = seen.isIntersecting; ask(false); }).observe(place);
  c.watch("value", apply);
  follow(room, apply);
}

/**
 * What comparing with plain decoding told: {of: the compared text, checked, measuring: whether more is to come}. It
 * proves only that text; while more is to come, the server is asked again. A run of this visit that comes back keeps
 * what was measured of it.
 * @type {(c: Component) => void}
 */
export function proofPart(c) {
  let timer = 0, known = { text: "", checked: null }, heard = "";   // heard: the trace shown when the result came
  const apply = () => {
    const view = viewOf("watch"), { of, checked, measuring } = JSON.parse(c.props.value), text = traceOf("watch");
    if (!view || !view.prove) return;
    const same = Boolean(view.model.summary) && view.model.summary.text === of, more = same && measuring;
    const elsewhere = ranHere("watch") && checked && checked.speed && checked.speed.machine;
    if (heard === text && same && checked && !elsewhere && !measuring && ranHere("watch")) known = { text, checked };
    const told = !same ? null : elsewhere ? { ...checked, speed: null } : checked;
    if (known.text === text && !told) view.prove(known.checked);
    else view.prove(told, more || Boolean(same && elsewhere));
    if (more) timer ||= setTimeout(ask, AGAIN);
    else { clearTimeout(timer); timer = 0; }
  };
  const ask = () => { timer = 0; c.trigger("asked"); apply(); };
  c.watch("value", () => { heard = traceOf("watch"); apply(); });
  follow("watch", apply);
}

/**
 * A button that saves the mean tree of the run on the screen as GraphML.
 * @type {(c: Component) => void}
 */
export function graphml(c) {
  const say = el("span", { class: "pg-said", role: "status" });
  c.element.append(el("button", { type: "button", class: "pg-tool", id: "save-graphml",
    text: "Save the mean tree (GraphML)", async onclick() {
      const trace = traceOf("watch");
      try {
        const answer = await c.server.export_graphml(trace);
        if (answer.graphml) saveText(answer.graphml, fileName(trace, "graphml"), "application/xml");
        say.textContent = answer.graphml ? "Saved: for networkx, Gephi, yEd and others." : answer.error;
      } catch { say.textContent = "The mean tree could not be saved; try again."; }
    } }), say);
}

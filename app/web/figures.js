// Beside the figures: the run that they belong to, its comparison with plain decoding, and the mean tree to save.
/** @import { Component, Tab } from "./types.d.ts" */
import { follow, ranHere, traceOf, viewOf } from "./rooms.js";
import { fileName } from "./runs.js";
import { saveText } from "./tools.js";
import { el, writeText } from "../../viz/web/base.js";

const AGAIN = 1000;   // ms after which the server is asked whether it has measured
const OLD = " These are of the run before; those of this one are drawn when it is over.";

/**
 * Mark figures of a run other than the one on the screen. The value is the last line of the trace that was drawn.
 * @type {(room: Tab, c: Component) => void}
 */
export function figuresOf(room, c) {
  const said = el("span", { role: "status" });
  const apply = () => {
    const figures = c.element.closest(".pg-figures"), line = figures && figures.querySelector(".pg-lead");
    if (!line) return;
    const old = !(traceOf(room) || "").trimEnd().endsWith(c.props.value || "");
    if (!said.isConnected) line.append(said);
    figures.toggleAttribute("data-old", old);
    writeText(said, old ? OLD : "");
  };
  c.watch("value", apply);
  follow(room, apply);
}

/**
 * What comparing with plain decoding told: {of: the compared text, checked, measuring: whether more is to come}. It
 * proves only that text; while more is to come, the server is asked again.
 * @type {(c: Component) => void}
 */
export function proofPart(c) {
  let timer = 0;
  const apply = () => {
    const view = viewOf("watch"), { of, checked, measuring } = JSON.parse(c.props.value);
    if (!view || !view.prove) return;
    const same = Boolean(view.model.summary) && view.model.summary.text === of, more = same && measuring;
    const elsewhere = ranHere("watch") && checked && checked.speed && checked.speed.machine;
    view.prove(!same ? null : elsewhere ? { ...checked, speed: null } : checked, more || Boolean(same && elsewhere));
    if (more) timer ||= setTimeout(ask, AGAIN);
    else { clearTimeout(timer); timer = 0; }
  };
  const ask = () => { timer = 0; c.trigger("asked"); apply(); };
  c.watch("value", apply);
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

// Beside the figures: the run that they belong to, plain decoding measured for comparison, and the mean tree to save.
/** @import { Component, Tab } from "./types.d.ts" */
import { follow, traceOf, viewOf } from "./rooms.js";
import { fileName } from "./runs.js";
import { saveText } from "./tools.js";
import { el, writeText } from "../../viz/web/base.js";

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
 * The message about the measurement; its value is {state: next | running | done | skipped, message}.
 * @type {(c: Component) => void}
 */
export function plain(c) {
  const line = el("p", { class: "pg-measured", role: "status" });
  const stop = el("button",
    { type: "button", class: "pg-tool", id: "plain-stop", text: "Stop measuring", onclick: () => c.trigger("halt") });
  const go = el("button",
    { type: "button", class: "pg-tool", id: "plain-measure", text: "Measure it now",
      onclick: () => c.trigger("asked") });
  c.element.append(line, stop, go);
  const show = () => {
    const { state, message } = JSON.parse(c.props.value);
    line.textContent = message;
    stop.hidden = state !== "running";
    go.hidden = state !== "skipped";
  };
  c.watch("value", show);
  show();
}

/**
 * The result of comparing with plain decoding: {of: the compared text, checked}. It proves only that text.
 * @type {(c: Component) => void}
 */
export function proofPart(c) {
  const apply = () => {
    const view = viewOf("watch"), { of, checked } = JSON.parse(c.props.value);
    if (view && view.prove) view.prove(view.model.summary && view.model.summary.text === of ? checked : null);
  };
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

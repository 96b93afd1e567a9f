// A slide of a room's picture: the button in its row of tools, and the controls that it opens.
/** @import { Component, Tab } from "./types.d.ts" */
import { drawFigures } from "./figures.js";
import { traceOf, viewOf } from "./rooms.js";
import { fileStem } from "./runs.js";
import { el } from "../../viz/web/base.js";
import { slideTools } from "../../viz/web/slides/slide.js";
import { constrainedLaw, exactnessOf } from "../../viz/web/trace.js";
import { oneLine } from "../../viz/web/words.js";

const LOOKS = { button: "pg-tool", select: "pg-tool", quiet: "pg-said" };

/** The line below the picture of a run. A race's picture already says what it shows. */
function heading(room) {
  const { model } = viewOf(room), { drafter, verifier, sampling, constraint } = (model && model.run) || {};
  if (!drafter) return "";
  const nameOf = ({ title, key }) => oneLine(title || key);
  const law = constrainedLaw({ verifier, constraint }), exact = exactnessOf(verifier);
  return `${nameOf(drafter)}, rule ${nameOf(verifier)} (${exact}${law ? `: the law of ${oneLine(law)}` : ""}), ` +
    `temperature ${sampling.temperature}`;
}

/**
 * {button, panel} for a row of tools. c: the object that gr.HTML hands over.
 * @type {(c: Component, room: Tab) => { button: HTMLElement, panel: HTMLElement }}
 */
export function slidePanel(c, room) {
  const panel = el("div", { class: "pg-slide", id: `${room}-slide-tools`, hidden: true });
  let tools = null;
  const button = el("button",
    { type: "button", class: "pg-tool", id: `${room}-slide`, text: "Save a picture", "aria-expanded": "false",
      "aria-controls": panel.id,
      title: "The picture of this moment as SVG or PNG, light or dark.", onclick() {
        if (!tools) {
          tools = slideTools(c.element.closest(".tabitem"),
            { name: () => fileStem(traceOf(room)), heading: () => heading(room), looks: LOOKS });
          panel.append(tools.element);
          new ResizeObserver(tools.look).observe(c.element.closest(".tabitem"));   // it grows with every picture
        }
        panel.hidden = !panel.hidden;
        button.setAttribute("aria-expanded", String(!panel.hidden));
        tools.look();
        if (!panel.hidden) drawFigures(room);   // they are pictures, too
      } });
  return { button, panel };
}

// What draws the trace of each tab.
/** @import { Component, Tab } from "./types.d.ts" */
import { settle } from "./history.js";
import { tuneHost } from "./tune.js";
import { watchLane } from "./shared.js";
import { relay } from "./lesson-run.js";
import { offer } from "./offer.js";
import { feed, follow, room, stateOf } from "./rooms.js";
import { mountCompare } from "../../viz/web/compare.js";
import { mountTune } from "../../viz/web/tune/tune.js";
import { mountWatch } from "../../viz/web/watch.js";

const LOST = 30_000;   // ms until a server is known to be silent

/** By tab: an element in, a view with feed and setState out. */
const MOUNTS = {
  watch: (element) => mountWatch(element, { changed: () => settle("watch") }),
  compare: (element) => mountCompare(element, { about: (key) => (offer.drafters[key] || {}).summary,
    watch: watchLane }),
  learn: () => relay,
  tune: (element) => mountTune(element, tuneHost),
};

/** Whether the address names a run that the server sends: one of these examples of Watch, or a program's answer. */
function awaits(late) {
  const asked = new URLSearchParams(location.search);
  return asked.get("tab") !== "compare" && (asked.has("answer") || late.includes(asked.get("preset")));
}

/**
 * Mount a tab's picture. It begins with the run that the address names; with the page's own where it names none, or
 * where the server has none or is silent. c: what gr.HTML hands to js_on_load.
 * @type {(tab: Tab, c: Component) => void}
 */
export function canvas(tab, c) {
  const r = room(tab), draw = () => feed(tab, c.props.value || "");
  r.view = MOUNTS[tab](c.element);
  c.watch("value", draw);
  if (c.props.value && awaits(c.props.late)) {
    const instead = () => { if (!r.trace) draw(); };
    setTimeout(instead, LOST);
    follow(tab, () => { if (stateOf(tab) === "error") instead(); });
  } else if (c.props.value) draw();
  r.view.setState(r.run.state, "");
}

// What draws the trace of each tab.
/** @import { Component, Tab } from "./types.d.ts" */
import { settle } from "./history.js";
import { tuneHost } from "./tune.js";
import { watchLane } from "./shared.js";
import { relay } from "./lesson-run.js";
import { offer } from "./offer.js";
import { feed, room } from "./rooms.js";
import { mountCompare } from "../../viz/web/compare.js";
import { mountTune } from "../../viz/web/tune/tune.js";
import { mountWatch } from "../../viz/web/watch.js";

const PATIENCE = 2500;   // ms: the trace that an address names comes from the server; else the page's own is drawn

/** By tab: an element in, a view with feed and setState out. */
const MOUNTS = {
  watch: (element) => mountWatch(element, { changed: () => settle("watch") }),
  compare: (element) => mountCompare(element, { about: (key) => (offer.drafters[key] || {}).summary,
    watch: watchLane }),
  learn: () => relay,
  tune: (element) => mountTune(element, tuneHost),
};

/** The example of Watch that the address names. */
function wished() {
  const asked = new URLSearchParams(location.search);
  return asked.get("tab") === "compare" ? null : asked.get("preset");
}

/**
 * Mount a tab's picture. c: what gr.HTML hands to js_on_load.
 * @type {(tab: Tab, c: Component) => void}
 */
export function canvas(tab, c) {
  const r = room(tab), draw = () => feed(tab, c.props.value || "");
  r.view = MOUNTS[tab](c.element);
  c.watch("value", draw);
  if (c.props.late.includes(wished())) setTimeout(() => { if (!r.trace) draw(); }, PATIENCE);
  else if (c.props.value) draw();
  r.view.setState(r.run.state, "");
}

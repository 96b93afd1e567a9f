// The note below the control Model: what the chosen family is, and how it comes onto this machine if it is not there.
// The value is JSON from the server: {models, here, task, share, problem, opened, n}, for one that is fetched.
/** @import { Component, Tab } from "./types.d.ts" */
import { onModels } from "./choices.js";
import { hearNewest } from "./newest.js";
import { el, writeText } from "../../viz/web/base.js";

const PAUSE = 700;      // ms between two looks at how far the work has come

/**
 * c.props: about: a sentence about each family; sizes: for those that are fetched, {name, licence, download, disk,
 * memory} in words.
 * @type {(room: Tab, c: Component) => void}
 */
export function modelNote(room, c) {
  const { about, sizes } = c.props;
  let family = "", timer = 0, now = JSON.parse(c.props.value);
  const send = (event, more = {}) => c.trigger(event, { models: family, ...more });
  const line = el("p", { class: "pg-help pg-model-about", "aria-live": "polite" });
  const fetch = el("button",
    { type: "button", class: "pg-tool pg-go", "data-model": "fetch", onclick: () => send("fetch") });
  const cancel = el("button",
    { type: "button", class: "pg-tool", "data-model": "cancel", text: "Cancel", onclick: () => send("cancel") });
  const bar = el("progress", { max: 1, value: 0, "aria-label": "Progress" }), doing = el("span", {});
  const progress = el("p", { class: "pg-own-progress", role: "status", hidden: true }, bar, doing, cancel);
  const problem = el("p", { class: "pg-alarm", role: "alert" });
  c.element.append(line, el("div", {}, fetch), progress, problem);

  function show() {
    const known = sizes[family], told = known && now.models === family ? now : null;
    const opening = told && told.here && told.task;
    const absent = told && !told.here;
    writeText(line, about[family] + (absent ? ` It is not on this machine yet: ${known.download} to download, `
      + `${known.disk} of disk while it is unpacked, ${known.memory} of memory when it runs. ${known.licence}.` : ""));
    writeText(fetch, known ? `Download ${known.name} (${known.download})` : "");
    fetch.hidden = !absent || Boolean(told.task);
    progress.hidden = !told || !told.task;
    cancel.hidden = Boolean(opening);
    bar.hidden = Boolean(opening);
    bar.value = told ? told.share : 0;
    writeText(doing, told && told.task ? ` ${told.task}${opening ? " it in the background" : ""} …` : "");
    writeText(problem, told ? told.problem : "");
    clearTimeout(timer);
    if (told && (told.task || told.here && !told.opened && !told.problem)) look();
  }
  /** Ask again and again, also where no answer comes. */
  function look() {
    timer = setTimeout(() => { send("look"); look(); }, PAUSE);
  }
  hearNewest(c, (value) => { now = value; show(); });
  onModels(room, (name) => {
    const other = name !== family;
    family = name;
    show();
    if (other && sizes[name]) send("look", { chosen: true });
  });
}

// A run of the reader's own within a lesson.
/** @import { Component } from "./types.d.ts" */
/** @import { View } from "../../viz/web/view-types.d.ts" */
import { follow, messageOf, stateOf, traceOf } from "./rooms.js";
import { askServer, beginRun } from "./run.js";
import { finished } from "./runs.js";
import { saying } from "./saying.js";
import { el, freshId, writeText } from "../../viz/web/base.js";
import { lessonSlider } from "../../viz/web/learn/chart.js";
import { mountWatch } from "../../viz/web/watch.js";

const ROOM = "learn";

/**
 * The open lesson draws a live run; the page's canvas passes every update on to it.
 * @type {View & { view: View | null }}
 */
export const relay = {
  view: null,
  feed(text) { if (relay.view) relay.view.feed(text); },
  setState(state) { if (relay.view) relay.view.setState(state, ""); },
};

/**
 * The run's controls, Run and Stop, and the picture. heard(trace): called when it has ended.
 * @type {(element: Element, spec: any, heard: (trace: string) => void, trigger: Component["trigger"]) =>
 *   { destroy(): void }}
 */
export function liveRun(element, spec, heard, trigger) {
  const wish = { ...spec.start, example: spec.example, options: { ...spec.options } };
  const holder = (name) => (name in spec.start ? wish : wish.options);
  const set = (name, value) => { holder(name)[name] = value; };
  const slider = (name) =>
    lessonSlider({ ...spec.sliders[name], value: holder(name)[name], told: String,
      onInput: (value) => set(name, value) }).element;
  const promptId = freshId("prompt");
  const prompt = () => el("div", {}, el("label", { for: promptId, text: "Prompt" }),
    Object.assign(el("textarea", { id: promptId, rows: 3, oninput: (event) => set("prompt", event.target.value) }),
      { value: wish.prompt }));
  const run = el("button",
    { type: "button", class: "ln-button", "data-main": "", id: "learn-run", text: "Run", onclick: begin });
  const stop = el("button",
    { type: "button", class: "ln-button", id: "learn-stop", text: "Stop", disabled: true,
      onclick: () => askServer(ROOM, "ask_stop") });
  const said = el("p", { class: "ln-quiet", id: "learn-said" }), hold = el("div");
  element.append(el("div", { class: "ln-live-controls" },
    ...spec.controls.map((name) => (name === "prompt" ? prompt() : slider(name))),
    el("div", { class: "ln-buttons" }, run, stop, said)), hold);
  const view = relay.view = mountWatch(hold, { ids: false, keys: false });
  let mine = false;

  function begin() {
    relay.view = view;
    mine = true;
    beginRun(ROOM);
    trigger("asked", { ...wish, options: { ...wish.options } });
  }
  const unfollow = follow(ROOM, () => {
    if (relay.view !== view || !mine) return;
    const state = stateOf(ROOM), busy = state === "running", text = traceOf(ROOM);
    run.disabled = busy;
    stop.disabled = !busy;
    writeText(said, messageOf(ROOM) || saying(ROOM, state, text));
    if (state === "done" && text && finished(text)) heard(text);
  });
  return { destroy() {
    unfollow();
    view.destroy();
    if (mine && relay.view === view && stateOf(ROOM) === "running") askServer(ROOM, "ask_stop");
  } };
}

// Tells screen readers what each step did, no faster than the reader wants.
import { el } from "./base.js";

/** Seconds between two announcements, in words; null: none. */
const PACES = [["4", "at most every 4 seconds"], ["0", "every step"], ["10", "at most every 10 seconds"],
  ["", "never"]];

/**
 * The line that is read out, and the choice of its pace, which is seen only while it has the focus.
 * @type {() => { element: HTMLElement, say(words: string): void, stop(): void }}
 */
export function makeAnnouncer() {
  const line = el("span", { class: "ds-unseen", role: "status" });
  const pace = el("select", { class: "ds-pace", onchange: () => { clearTimeout(timer); timer = 0; tell(); } },
    ...PACES.map(([value, text]) => el("option", { value, text })));
  const element = el("div", { class: "ds-spoken" },
    el("label", {}, el("span", { text: "Steps are read out " }), pace), line);
  let timer = 0, latest = "", last = -Infinity;

  /** Read out the newest words, now or as soon as the pace allows. */
  function tell() {
    if (timer || pace.value === "" || line.textContent === latest) return;
    const wait = Number(pace.value) * 1000 - (performance.now() - last);
    if (wait > 0) { timer = setTimeout(() => { timer = 0; tell(); }, wait); return; }
    last = performance.now();
    line.textContent = latest;
  }

  return { element, say(words) { latest = words; tell(); }, stop() { clearTimeout(timer); } };
}

// Values that the server sends to a section. They need not come in the order in which it made them, and one that it
// made before the visitor set something may come after that.
/** @import { Component } from "./types.d.ts" */

const answers = {};   // by section: what to do once the server has answered what the visitor set there

/**
 * Hear the values of a section, JSON with their number n, except those that the server made before one that has come.
 * Returns ask(event, data), which tells the server what the visitor has set: until it has answered no value is heard,
 * then the newest. What is set meanwhile is asked next, of each event the last. section: its name, for `answered`.
 * @type {(c: Component, hear: (value: any) => void, section?: string) => (event: string, data?: object) => void}
 */
export function hearNewest(c, hear, section = "") {
  let newest = c.props.value, { n } = JSON.parse(newest), busy = false;
  const waiting = new Map();
  function ask(event, data) {
    if (busy) { waiting.set(event, data); return; }
    busy = true;
    c.trigger(event, data);
  }
  c.watch("value", () => {
    const value = JSON.parse(c.props.value);
    if (value.n < n) { c.props.value = newest; return; }   // a run sends the value to the server
    ({ n } = value);
    newest = c.props.value;
    if (!busy) hear(value);
  });
  answers[section] = () => {
    busy = false;
    const [next] = waiting;
    if (!next) { hear(JSON.parse(newest)); return; }
    waiting.delete(next[0]);
    ask(...next);
  };
  return ask;
}

/**
 * The server has answered what was set in this section, well or badly.
 * @type {(section: string) => void}
 */
export const answered = (section) => { setTimeout(() => answers[section]?.()); };   // after its value

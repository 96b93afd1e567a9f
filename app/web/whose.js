// Whose settings the controls of a tab hold: an example's, as long as the models, prompt, schema, drafters with their
// options, and temperature are the example's own; else the visitor's.
// The value of the note on what to look for is the example's name, "" for the visitor's own; the list of examples and
// the cards have the same value, as long as the example is listed.
/** @import { Component, Tab } from "./types.d.ts" */
import { setConversation } from "./agreement.js";
import { converses, stopStrings } from "./conversation.js";
import { onTemperature } from "./choices.js";
import { bringExample, exampleOf, examplesOf, takeExamples } from "./examples.js";
import { remember } from "./history.js";
import { namedControls } from "./rooms.js";
import { el, targetOf } from "../../viz/web/base.js";

const PAUSE = 60;      // ms

/**
 * What to look for in the example. c.props: examples, own: the text where there is none, prompt: the id of the
 * prompt's box. Sends "edited" after an edit of the prompt, because Gradio's own event comes with some keys only.
 * @type {(room: Tab, c: Component) => void}
 */
export function exampleNote(room, c) {
  const line = el("p", { class: "pg-note", "aria-live": "polite", tabindex: 0 });
  takeExamples(room, c.props.examples);
  c.element.append(line);
  let temperature = 0;
  const own = () => c.props.own + (temperature ? ` Temperature ${temperature}: chance decides, too.` : "");
  const write = () => {
    const example = examplesOf(room)[c.props.value];
    line.replaceChildren(...(example ? [el("strong", { text: "Look for: " }), example.look_for] : [own()]));
    return example;
  };
  const show = () => {
    const example = write();
    if (example) bringExample(room, c.props.value);
    if (example && example.turns && converses(example.models))   // as the server has it now
      setConversation({ chat: false, system: "", turns: example.turns, stop: stopStrings() });
    remember(room, c.props.value);
  };
  c.watch("value", show);
  show();
  onTemperature(room, (now) => { temperature = now; write(); });
  let timer = 0;
  document.addEventListener("input", (event) => {
    if (!targetOf(event)?.closest(`#${c.props.prompt}, #json-schema`)) return;
    clearTimeout(timer);
    timer = setTimeout(() => c.trigger("edited"), PAUSE);   // Gradio has taken the words over by then
  });
}

/**
 * The same name for the note first, then for the components that know listed examples only. values: the name so far,
 * then the controls in their order.
 * @type {(room: Tab, times: number, values: any[]) => string[]}
 */
export function whose(room, times, [shown, ...values]) {
  const all = examplesOf(room), now = namedControls(room, values);
  if (!all || !(now.pair || now.lanes)) return Array(times).fill(shown);   // a tab that nobody has opened yet
  const name = exampleOf(room, now, shown);
  return [name, ...Array(times - 1).fill(name && all[name].listed ? name : "")];
}

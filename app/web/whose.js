// Whose settings the controls of a tab hold: an example's, as long as the models, prompt, schema, drafters with their
// options, and temperature are the example's own; else the visitor's.
// The value of the note on what to look for is the example's name, "" for the visitor's own; the list of examples and
// the cards have the same value, as long as the example is listed.
(function () {
  "use strict";
  const P = (globalThis.DraftscopePage = globalThis.DraftscopePage || {});
  const PAUSE = 60;      // ms
  const examples = {};   // by room, then by name: {prompt, pair or lanes, temperature, models, json_schema, look_for, listed}

  const brought = {};    // by room: the example that was shown last; it is known again when all its settings are back, listed or not

  /** The prompt of a room's example; undefined where there is none of this name. */
  P.examplePrompt = (room, name) => examples[room][name] && examples[room][name].prompt;

  /**
   * What to look for in the example. c.props: examples, own: the text where there is none, prompt: the id of the
   * prompt's box. Sends "edited" after an edit of the prompt, because Gradio's own event comes with some keys only.
   */
  P.exampleNote = function (room, c) {
    const line = Draftscope.el("p", { class: "pg-note", "aria-live": "polite" });
    examples[room] = c.props.examples;
    c.element.append(line);
    const show = () => {
      const example = examples[room][c.props.value];
      line.replaceChildren(...(example ? [Draftscope.el("strong", { text: "Look for: " }), example.look_for] : [c.props.own]));
      if (example) brought[room] = c.props.value;
      P.remember(room, c.props.value);
    };
    c.watch("value", show);
    show();
    let timer = 0;
    document.addEventListener("input", (event) => {
      if (!event.target.closest(`#${c.props.prompt}, #json-schema`)) return;
      clearTimeout(timer);
      timer = setTimeout(() => c.trigger("edited"), PAUSE);   // Gradio has taken the words over by then
    });
  };

  /** A pair without the options that have their default values, so that the same pair is always the same text. */
  function told({ drafter, options = {}, verifier = "", rule_options: ofRule = {} }) {
    const { drafters, rules } = P.offer, known = drafters[drafter];
    const changed = (values, declared) => declared.filter(({ name, default: usual }) => values[name] !== undefined && values[name] !== usual).map(({ name }) => [name, values[name]]);
    const judge = verifier && rules[verifier] ? rules[verifier].options : [];
    return [drafter, changed(options, known ? known.options : []), verifier, changed(ofRule, judge)];
  }
  const alike = (given) => { const value = JSON.parse(given); return JSON.stringify(Array.isArray(value) ? value.map(told) : told(value)); };

  /**
   * The name of the example whose settings a room's controls hold: first the one shown, if it fits; "" where none does.
   * now: the controls by name.
   */
  P.exampleOf = function (room, now, shown = P.exampleShown(room)) {
    const all = examples[room], own = alike(now.pair || now.lanes), same = (one, name) => (one[name] || "").trim() === (now[name] || "").trim();
    const fits = (name) => Object.hasOwn(all, name) && all[name].prompt === now.prompt && all[name].temperature === Number(now.temperature)
      && same(all[name], "models") && same(all[name], "json_schema") && alike(all[name].pair || all[name].lanes) === own;
    return [shown, brought[room], ...Object.keys(all).filter((one) => all[one].listed)].find(fits) || "";
  };

  /**
   * The same name for the note first, then for the components that know listed examples only. values: the name so far,
   * then the controls in their order.
   */
  P.whose = function (room, times, [shown, ...values]) {
    const all = examples[room], now = P.named(room, values);
    if (!all || !(now.pair || now.lanes)) return Array(times).fill(shown);   // a tab that nobody has opened yet
    const name = P.exampleOf(room, now, shown);
    return [name, ...Array(times - 1).fill(name && all[name].listed ? name : "")];
  };
})();

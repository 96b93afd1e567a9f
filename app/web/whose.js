// Whose settings the controls of a tab hold: an example's, as long as prompt and drafters are its own; else the visitor's.
// The note on what to look for has the example's name as its value, "" for the visitor's own; the list of examples and the
// cards have it too, as long as the example is listed.
(function () {
  "use strict";
  const P = (globalThis.DraftscopePage = globalThis.DraftscopePage || {});
  const PAUSE = 60;      // ms
  const examples = {};   // by room, then by name: {prompt, drafters, look_for, listed}
  const DRAFTERS = { watch: (pair) => JSON.parse(pair).drafter, compare: (lanes) => JSON.parse(lanes).map((lane) => lane.drafter).join() };

  /** The prompt of a room's example; undefined where there is none of this name. */
  P.examplePrompt = (room, name) => examples[room][name] && examples[room][name].prompt;

  /**
   * What to look for in the example. c.props: examples, own: what is said where there is none, prompt: the id of the
   * prompt's box. Says "edited" when the prompt was: Gradio's own event for it comes with some keys only.
   */
  P.exampleNote = function (room, c) {
    const line = Draftscope.el("p", { class: "pg-note", "aria-live": "polite" });
    examples[room] = c.props.examples;
    c.element.append(line);
    const show = () => {
      const example = examples[room][c.props.value];
      Draftscope.write(line, example ? example.look_for : c.props.own);
    };
    c.watch("value", show);
    show();
    let timer = 0;
    document.addEventListener("input", (event) => {
      if (!event.target.closest(`#${c.props.prompt}`)) return;
      clearTimeout(timer);
      timer = setTimeout(() => c.trigger("edited"), PAUSE);   // Gradio has taken the words over by then
    });
  };

  /** The name of the example with this prompt and these drafters: the one shown, if it has them. For the note first, then for
   * all that know listed examples only. */
  P.whose = function (room, times, [shown, prompt, chosen]) {
    const all = examples[room];
    if (!all || !chosen) return Array(times).fill(shown);   // a tab that nobody has opened yet
    const drafters = DRAFTERS[room](chosen);
    const fits = (name) => Object.hasOwn(all, name) && all[name].prompt === prompt && all[name].drafters === drafters;
    const name = [shown, ...Object.keys(all).filter((one) => all[one].listed)].find(fits) || "";
    return [name, ...Array(times - 1).fill(name && all[name].listed ? name : "")];
  };
})();

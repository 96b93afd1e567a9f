// A number out of range, typed into one of Gradio's sliders or asked for by a link, is brought to its bound; here that is said.
(function () {
  "use strict";
  const P = (globalThis.DraftscopePage = globalThis.DraftscopePage || {});
  const NAMES = { t: "temperature", k: "top_k", p: "top_p", seed: "seed", n: "max_new_tokens" };

  /** The block of a number, and the line in it that speaks of its bound. */
  function lineOf(block) {
    let line = block.querySelector(":scope > .pg-bound");
    if (!line) block.append(line = Draftscope.el("p", { class: "pg-bound pg-help", role: "status" }));
    return line;
  }
  const blockOf = (field) => field.closest(".pg-panel .block[id]");

  document.addEventListener("input", ({ target }) => {
    const block = target.matches && target.matches("input[type=number]") && blockOf(target), range = block && block.querySelector("input[type=range]");
    if (!range) return;
    const asked = Number(target.value), set = Draftscope.clamp(asked, Number(range.min), Number(range.max));
    lineOf(block).textContent = asked === set || target.value === "" ? "" : P.boundWords(asked, range.min, range.max, set);
  }, true);

  /** now: the controls that a link has set. Names, as sentences, what it asked for out of range. */
  P.outOfRange = function (query, now, declared) {
    const said = [];
    for (const [short, name] of Object.entries(NAMES)) {
      const asked = query.get(short);
      if (asked !== null && asked !== "" && Number(asked) !== Number(now[name])) said.push(`${name.replaceAll("_", " ")} ${asked} was set to ${now[name]}`);
    }
    for (const { name } of declared) {
      const asked = query.get(`o.${name}`), set = JSON.parse(now.pair || "{}").options || {};
      if (asked !== null && set[name] !== undefined && String(set[name]) !== asked && Number(asked) !== set[name]) said.push(`${name.replaceAll("_", " ")} ${asked} was set to ${set[name]}`);
    }
    return said;
  };
})();

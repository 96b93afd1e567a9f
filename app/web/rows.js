// The rows of tools under the pictures of Watch and Compare: files, and the link that brings another visitor here.
(function () {
  "use strict";
  const P = (globalThis.DraftscopePage = globalThis.DraftscopePage || {});
  const SHORT = ["t", "k", "p", "seed", "n"];
  const says = {};   // by room: what tells of its link

  function row(c, room, linkId, exported) {
    const line = Draftscope.el("span", { class: "pg-said", role: "status" }), say = (words) => { line.textContent = words; };
    says[room] = say;
    const slide = P.slide(c, room);
    c.element.append(...P.fileTools(c, room, say, exported), P.toolButton(linkId, "Copy link", () => c.trigger("link")), slide.button, line, slide.panel);
  }

  P.tools = function (c) {
    row(c, "watch", "copy-link", (text) => c.server.export_page(text));
    P.onMove("watch", (query) => c.trigger("moved", { query }));
  };

  /** Tells the server, too, when the tab comes on the screen, and at which address: it then sends the race made earlier. */
  P.raceTools = function (c) {
    row(c, "compare", "race-link", (text) => c.server.export_race(text));
    P.onMove("compare", (query) => c.trigger("moved", { query }));
    const seen = new ResizeObserver(() => {
      if (!c.element.clientWidth) return;      // another tab is open
      seen.disconnect();
      if (!P.trace("compare")) c.trigger("seen", { query: Object.fromEntries(new URLSearchParams(location.search)) });
    });
    seen.observe(c.element);
  };

  /** What both addresses begin and end with; the prompt only where it is not the example's own. */
  function address(room, { preset, prompt, numbers }, fill) {
    const query = new URLSearchParams();
    if (preset) query.set("preset", preset);
    if (prompt !== P.examplePrompt(room, preset)) query.set("prompt", prompt);
    fill(query);
    SHORT.forEach((name, i) => { if (numbers[i] !== null && numbers[i] !== undefined) query.set(name, numbers[i]); });
    return query;
  }

  /** Put the address into the address bar and on the clipboard. */
  async function copy(room, query) {
    const link = `${location.origin}${location.pathname}?${query}`;
    try {
      history.replaceState(null, "", link);
      await navigator.clipboard.writeText(link);
      says[room](query.has("step") ? "Link copied: it brings this run, this step and the chosen token." : "Link copied.");
    } catch { says[room]("The link stands in the address bar."); }
  }

  /** A pair in an address; names: what its fields are called there, of options what stands before theirs. */
  function write(query, pair, names) {
    query.set(names.drafter, pair.drafter);
    if (pair.verifier) query.set(names.verifier, pair.verifier);
    for (const [name, value] of Object.entries(pair.options)) query.set(names.options + name, value);
    for (const [name, value] of Object.entries(pair.rule_options)) query.set(names.rule_options + name, value);
  }

  /** What the picture shows of this run: who opens the link gets the run, and in it this step and token. */
  function shown(query) {
    const { step, chosen } = P.view("watch");
    query.set("run", "1");
    if (step < 0) return;
    query.set("step", step + 1);
    if (chosen !== null) query.set("node", chosen);
  }

  /** values: of Watch's controls, in their order. */
  P.link = function ([preset, prompt, pair, schema, ...rest]) {
    const numbers = rest.slice(0, -1), models = rest.at(-1);
    const names = { drafter: "drafter", options: "o.", verifier: "verifier", rule_options: "r." };
    return copy("watch", address("watch", { preset, prompt, numbers }, (query) => {
      write(query, JSON.parse(pair), names);
      if (schema) query.set("schema", schema);
      if (models) query.set("models", models);
      if (P.agrees("watch")) shown(query);
    }));
  };

  /** values: of Compare's controls, in their order. */
  P.raceLink = function ([preset, prompt, lanes, ...numbers]) {
    return copy("compare", address("compare", { preset, prompt, numbers }, (query) => {
      query.set("tab", "compare");
      JSON.parse(lanes).forEach((lane, i) => {
        const [drafter, rule] = [`lane${i + 1}`, `rule${i + 1}`];
        write(query, lane, { drafter, options: `${drafter}.`, verifier: rule, rule_options: `${rule}.` });
      });
    }));
  };
})();

// The state of a room as an address: what Copy link copies, and what the address bar shows while nothing moves.
(function () {
  "use strict";
  const P = (globalThis.DraftscopePage = globalThis.DraftscopePage || {});
  const SHORT = { t: "temperature", k: "top_k", p: "top_p", seed: "seed", n: "max_new_tokens" };
  const REST = 400;   // ms without a change; browsers refuse an address that is written too often
  const timers = {};  // by room

  /** What both addresses begin and end with; the prompt only where it is not the example's own. */
  function address(room, preset, now, fill) {
    const query = new URLSearchParams();
    if (preset) query.set("preset", preset);
    if (now.prompt !== P.examplePrompt(room, preset)) query.set("prompt", now.prompt);
    fill(query);
    if (now.models) query.set("models", now.models);
    for (const [short, name] of Object.entries(SHORT)) if (now[name] !== null && now[name] !== undefined) query.set(short, now[name]);
    return query;
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

  /** By room: the address of these controls, named as in agreement.js. preset: the example whose settings they are, or "". */
  const OF = {
    watch: (preset, now) => address("watch", preset, now, (query) => {
      write(query, JSON.parse(now.pair), { drafter: "drafter", options: "o.", verifier: "verifier", rule_options: "r." });
      if (now.json_schema) query.set("schema", now.json_schema);
      if (P.agrees("watch")) shown(query);
    }),
    compare: (preset, now) => address("compare", preset, now, (query) => {
      query.set("tab", "compare");
      JSON.parse(now.lanes).forEach((lane, i) => {
        const [drafter, rule] = [`lane${i + 1}`, `rule${i + 1}`];
        write(query, lane, { drafter, options: `${drafter}.`, verifier: rule, rule_options: `${rule}.` });
      });
    }),
  };

  /** The address of a room whose controls hold this. */
  P.addressOf = (room, now) => OF[room](P.exampleOf(room, now), now);

  /** Put an address into the address bar, in the place of the one that is there. It keeps what belongs to the server, such as the theme. */
  function put(query) {
    for (const [name, value] of new URLSearchParams(location.search)) if (name.startsWith("__")) query.set(name, value);
    const link = `${location.pathname}?${query}`;
    if (link !== location.pathname + location.search) history.replaceState(null, "", link);
  }

  /** Something in a room has changed: once nothing moves there, the address bar follows. */
  P.settle = function (room) {
    clearTimeout(timers[room]);
    timers[room] = setTimeout(() => {
      const now = P.now(room);
      if (!now || !P.atRest(room) || !P.onScreen(room) || !location.protocol.startsWith("http")) return;
      try { put(P.addressOf(room, now)); } catch { /* the browser refuses it: the old one stays */ }
    }, REST);
  };

  /** Copy link, with the values of a room's example and controls, in their order. */
  P.link = async function (room, values) {
    const query = P.addressOf(room, P.named(room, values)), link = `${location.origin}${location.pathname}?${query}`;
    try {
      put(query);
      await navigator.clipboard.writeText(link);
      P.sayOfLink(room, query.has("step") ? "Link copied: it brings this run, this step and the chosen token." : "Link copied.");
    } catch { P.sayOfLink(room, "The link stands in the address bar."); }
  };
})();

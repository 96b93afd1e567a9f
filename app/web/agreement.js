// Whether the picture matches the controls. A picture that does not match is dimmed and says so.
(function () {
  "use strict";
  const P = (globalThis.DraftscopePage = globalThis.DraftscopePage || {});
  const rooms = {};   // by name: {now: the controls as named values, asked: those at the last press of Run, cover}
  const room = (name) => (rooms[name] = rooms[name] || { now: null, asked: null, own: null, cover: null });
  let talk = { chat: false, system: "", turns: [], stop: [] };   // the visitor's conversation, as the server keeps it
  const FIELDS = {
    watch: ["prompt", "pair", "json_schema", "temperature", "top_k", "top_p", "seed", "max_new_tokens", "models"],
    compare: ["prompt", "lanes", "temperature", "top_k", "top_p", "seed", "max_new_tokens", "models"],
  };
  const RUN = { watch: ["Run", "run"], compare: ["Race", "race"] };
  const SAMPLING = [["temperature", "the temperature"], ["top_k", "top-k"], ["top_p", "top-p"], ["seed", "the seed"]];
  /** The values of a room's controls, in their order, by name. */
  P.named = (name, values) => Object.fromEntries(FIELDS[name].map((field, i) => [field, values[i]]));
  /** The controls as they are now; null until the address has been read. */
  P.now = (name) => { const r = room(name); return r.came ? r.now : null; };
  const lines = (trace) => trace.trimEnd().split("\n").filter(Boolean).map((line) => JSON.parse(line));

  /** The runs of a trace, or of a race by lane: [{run, summary or undefined}], in the order of the controls. */
  P.runsOf = function (trace) {
    const found = new Map();
    for (const entry of lines(trace)) {
      const lane = entry.lane === undefined ? "" : entry.lane;
      if (entry.kind === "run") found.set(lane, { run: entry });
      if (entry.kind === "summary" && found.has(lane)) found.get(lane).summary = entry;
    }
    return [...found.values()];
  };

  /**
   * A run's options by name, and each part that can be chosen: the run's own, or the default one if the trace does not
   * tell or the part is not here.
   */
  P.optionsOf = function ({ drafter }) {
    const known = P.offer.drafters[drafter.key], held = { ...drafter.options };
    for (const { name, part, choices, default: usual } of known ? known.options : []) {
      const had = part && (drafter.parts || {})[part];
      if (part) held[name] = choices.includes(had) ? had : usual;
    }
    return held;
  };

  /** The settings of a drafter and its rule that differ from the run's. asked: the pair that made the run, if known. */
  function ofPair(pair, run, asked, temperature) {
    const known = P.offer.drafters[pair.drafter];
    if (!known || pair.drafter !== run.drafter.key) return ["the drafter"];
    const told = [], held = P.optionsOf(run);
    for (const { name, default: usual, label, auto } of known.options) {
      const wanted = pair.options[name] === undefined ? usual : pair.options[name];
      const left = auto && !wanted;                              // to the machine: the run has the number that came of it
      const before = asked && asked.options ? asked.options[name] ?? usual : wanted;
      if (left ? before !== wanted : held[name] !== undefined && held[name] !== wanted) told.push(label || name.replaceAll("_", " "));
    }
    const rule = pair.verifier || P.automaticRule(pair.drafter, temperature);
    if (rule !== run.verifier.key) return [...told, "the rule"];
    const judged = run.verifier.options || {}, called = (name) => P.offer.rules[rule].options.find((option) => option.name === name)?.label || name.replaceAll("_", " ");
    for (const [name, value] of Object.entries(pair.rule_options || {})) if (judged[name] !== undefined && judged[name] !== value) told.push(called(name));
    return told;
  }

  /** A run that stopped at its length was given just that length; any other had room left. */
  function otherLength(most, summary) {
    if (!summary || !["length", "eos", "stop"].includes(summary.stop)) return false;
    return summary.stop === "length" ? summary.new_tokens !== most : summary.new_tokens > most;
  }

  /**
   * The turns that a run with this prompt answers, or null outside a conversation. The last turn, said again unchanged,
   * is answered anew: see Choice.asking in app/own.py.
   */
  P.asking = function (name, prompt) {
    if (name !== "watch" || !talk.chat) return null;
    const said = [...(talk.system ? [{ role: "system", content: talk.system }] : []), ...talk.turns], before = said.at(-2);
    return before && before.role === "user" && before.content === prompt ? said.slice(0, -1) : [...said, { role: "user", content: prompt }];
  };
  const turnsAsText = (turns) => JSON.stringify((turns || []).map(({ role, content }) => [role, content]));

  /** The differences in the prompt: the text, or the turns of a conversation. */
  function ofPrompt(name, now, { prompt }) {
    const turns = P.asking(name, now.prompt), had = prompt.messages;
    if (!turns) return now.prompt === prompt.text ? [] : ["the prompt"];
    if (turnsAsText(turns) === turnsAsText(had)) return [];
    return [had && had.at(-1).content === now.prompt ? "the conversation" : "the prompt"];
  }

  /** The differences in the target, and in what ends the text. own: the visitor's own pair when Run was pressed, or null. */
  function ofOwn(name, now, { target, stop_strings: stop = [] }, own) {
    const told = [], wanted = now.models ? "" : P.ownTarget();
    if (own === null ? wanted && wanted !== target.name : !now.models && own !== P.ownPair()) told.push("the target");
    if (own !== null && name === "watch" && JSON.stringify(stop) !== JSON.stringify(talk.stop)) told.push("what ends the text");
    return told;
  }

  /**
   * The settings, in words, that differ between a room's controls and its picture's runs. asked: the run's controls, or
   * null; own: the visitor's own pair at that time, or null.
   */
  P.differences = function (name, now, runs, asked, own = null) {
    if (!runs.length) return [];
    const { run } = runs[0], told = [], pairs = JSON.parse(now.lanes || `[${now.pair}]`), before = asked ? JSON.parse(asked.lanes || `[${asked.pair}]`) : [];
    told.push(...ofPrompt(name, now, run));
    if (name !== "whatif") told.push(...ofOwn(name, now, run, own));
    if (now.models !== undefined && (now.models || "") !== (run.family || "")) told.push("what is written");
    if (pairs.length !== runs.length) told.push("the lanes");
    else pairs.forEach((pair, i) => told.push(...ofPair(pair, runs[i].run, before[i], Number(now.temperature))));
    for (const [number, words] of SAMPLING) if (Number(now[number]) !== run.sampling[number]) told.push(words);
    if (now.json_schema !== undefined && (now.json_schema || "").trim() !== ((run.constraint && run.constraint.text) || "").trim()) told.push("the JSON schema");
    if (runs.some(({ summary }) => otherLength(Number(now.max_new_tokens), summary))) told.push("the number of new tokens");
    return [...new Set(told)];
  };

  const listed = (words) => (words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`);

  /** The message on the picture, and the button that starts a matching run. */
  function cover(name, words, running) {
    const { el } = Draftscope, [button, id] = RUN[name];
    const said = running ? `Changed since this run began: ${listed(words)}.` : `This picture shows another run: ${listed(words)} ${words.length > 1 ? "are" : "is"} not as you set ${words.length > 1 ? "them" : "it"}.`;
    return el("div", { class: "pg-cover", role: "status", "data-for": name }, el("p", { text: said }),
      running ? null : el("button", { type: "button", class: "pg-tool pg-go", text: `Press ${button} for yours`, onclick: () => document.getElementById(id).click() }));
  }

  /** The settings that differ between a room's controls and its picture. */
  function differing(name) {
    const r = room(name), here = P.ranHere(name);
    return P.differences(name, r.now, P.runsOf(P.trace(name)), here ? r.asked : null, here ? r.own : null);
  }

  /**
   * A room's controls with the sizes that this page picked for the run on the screen, in the place of those left to the
   * page: another visit may pick others, and a link is to bring this run.
   */
  P.settled = function (name, now) {
    if (!P.ranHere(name) || !P.agrees(name)) return now;
    const runs = P.runsOf(P.trace(name)), pairs = JSON.parse(now.lanes || `[${now.pair}]`);
    pairs.forEach((pair, i) => {
      for (const { name: option, auto } of P.offer.drafters[pair.drafter].options) if (auto && !pair.options[option]) pair.options[option] = runs[i].run.drafter.options[option];
    });
    return { ...now, ...(now.lanes ? { lanes: JSON.stringify(pairs) } : { pair: JSON.stringify(pairs[0]) }) };
  };

  /** Compare once more, and mark the picture. */
  function look(name) {
    const r = room(name), view = P.view(name), trace = P.trace(name), running = P.stateOf(name) === "running";
    if (!view || !view.cover || !r.now) return;
    const words = !trace || P.waiting(name) ? [] : differing(name);
    const now = JSON.stringify([words, running]);
    if (now !== r.cover) {
      r.cover = now;
      view.cover(words.length ? cover(name, words, running) : null, running);
    }
    P.settle(name);
    if (!running && r.came && !P.waiting(name)) P.arrive(name, words.length === 0);
  }

  /** Take over the values of a room's controls, in the order of its fields. came: the address has just set them. */
  P.controls = function (name, values, came) {
    const r = room(name), first = !r.now, before = JSON.stringify(r.now), set = r.came && !came;
    r.came = r.came || came;
    r.now = P.named(name, values);
    if (came) P.sayBounds(name, r.now);
    P.setTemperature(name, r.now.temperature);
    P.setModels(name, r.now.models);
    if (first) P.follow(name, () => look(name));
    else if (before !== JSON.stringify(r.now)) { P.calm(name); if (set) P.leaveAddress(); }
    look(name);
  };
  /** Run was pressed: the current settings make the next run. */
  P.pressed = (name) => Object.assign(room(name), { asked: room(name).now, own: P.ownPair() });
  /** Whether the picture matches the controls. */
  P.agrees = (name) => Boolean(room(name).now && P.trace(name)) && !differing(name).length;
  /** Take over the visitor's conversation and what ends a text. */
  P.setConversation = function ({ chat, system, turns, stop }) {
    talk = { chat, system, turns, stop };
    for (const name of Object.keys(rooms)) look(name);
  };
})();

// The page's own script: hands traces to the drawing code and keeps the buttons in step with the run.
// Text only ever goes in through textContent.
(function () {
  "use strict";
  const P = (globalThis.DraftscopePage = globalThis.DraftscopePage || {});
  const rooms = {};   // by name: {view, status, trace, ran, mine, heard, show}
  const PATIENCE = 2500;   // ms: the trace that an address asks for comes from the server; if it does not, the page's own is drawn

  const room = (name) => (rooms[name] = rooms[name] || { view: null, status: { state: "idle", message: "" }, heard: [] });
  P.trace = (name) => (rooms[name] && rooms[name].trace) || "";
  P.view = (name) => room(name).view;
  P.stateOf = (name) => room(name).status.state;
  P.messageOf = (name) => room(name).status.message;
  /** Ask the server for something about a room's run: ask_stop, ask_pause. */
  P.ask = (name, wish) => ask(room(name), wish);
  /** Whether the trace of a room was written by a run of this visit, not brought or made earlier. */
  P.ranHere = (name) => Boolean(room(name).ran);
  /** The last finished run of this visit, once another trace has taken its place; "" while there is none. */
  P.putAway = (name) => (!room(name).ran && room(name).mine) || "";
  /** Whether a run has been asked for, but nothing of it has come yet. */
  P.waiting = (name) => Boolean(room(name).unheard);
  P.show = (name, status) => { if (room(name).show) room(name).show(status); };
  /** Call `hear` when the trace or the state of a room has changed, and once now. Returns a function that ends this. */
  P.follow = function (name, hear) {
    const r = room(name);
    r.heard.push(hear);
    hear();
    return () => { r.heard = r.heard.filter((one) => one !== hear); };
  };
  const tell = (r) => r.heard.forEach((hear) => hear());
  /** The example of Watch that the address names. */
  const wished = () => {
    const asked = new URLSearchParams(location.search);
    return asked.get("tab") === "compare" ? null : asked.get("preset");
  };
  /** What draws a room's trace, by kind: an element in, a view with feed and setState out. */
  P.mounts = {
    watch: (element) => Draftscope.mountWatch(element, { changed: () => P.settle("watch"), raced: true }),
    compare: (element) => Draftscope.mountCompare(element, { about: (key) => (P.offer.drafters[key] || {}).summary }),
  };
  /** Whether nothing moves in a room: no run goes on or waits, and no steps are being replayed. */
  P.atRest = (name) => Boolean(room(name).trace) && !["running", "paused"].includes(P.stateOf(name)) && !P.waiting(name) && !P.view(name).playing;

  /** Mount a canvas. c: what gr.HTML hands to js_on_load. */
  P.canvas = function (kind, c) {
    const r = room(kind);
    r.view = P.mounts[kind](c.element);
    const draw = () => {
      const next = c.props.value || "";
      if (!r.trace || !next.startsWith(r.trace)) another(r, next);
      r.trace = next;
      r.view.feed(r.trace);
      tell(r);
    };
    c.watch("value", draw);
    if (c.props.late.includes(wished())) setTimeout(() => { if (!r.trace) draw(); }, PATIENCE);
    else if (c.props.value) draw();
    r.view.setState(r.status.state, "");
  };

  /** Another trace replaces the one on the screen. A finished run of this visit is kept until the next one. */
  function another(r, next) {
    if (r.ran && P.finished(r.trace)) r.mine = r.trace;
    r.ran = next === r.mine || ["running", "paused"].includes(r.status.state);
  }

  /** The line under the buttons: tells what is going on, and passes the state on to the picture and the buttons. */
  P.status = function (kind, c) {
    const r = room(kind);
    const line = Draftscope.el("p", { class: "pg-say", role: "status" });
    const alarm = Draftscope.el("p", { class: "pg-alarm", role: "alert" });
    c.element.append(line, alarm);
    r.trigger = c.trigger;
    r.heard.push(() => {
      const { state, message } = r.status, bad = state === "error";
      Draftscope.write(line, bad ? "" : message || P.saying(kind, state, r.trace || ""));
      Draftscope.write(alarm, bad ? message : "");
    });
    const show = (status) => {
      r.status = status;
      if (r.view) r.view.setState(status.state, "");
      tell(r);
      setTimeout(() => buttons(kind));   // not within the click that caused it: it must still reach the button
    };
    r.show = show;
    const hear = () => {
      const status = JSON.parse(c.props.value);
      show(status);
      heard(r, status);
    };
    c.watch("value", hear);
    hear();
  };

  /**
   * The server reports on a run. A running one without a message can be paused or stopped now, and is, if that was
   * asked for meanwhile.
   */
  function heard(r, status) {
    if (status.state === "running" && status.message) return;   // models are being loaded, there is no run yet
    const wish = status.state === "running" && r.wish;
    r.unheard = false;
    r.wish = null;
    if (wish) r.trigger(wish);
  }

  /** Ask the server to pause or stop the run. A click that comes before the server knows of the run waits. */
  function ask(r, wish) {
    if (!r.unheard) return r.trigger(wish);
    r.wish = wish;
    return r.show({ state: "running", message: wish === "ask_stop" ? "It stops as soon as it begins." : "It pauses as soon as it begins." });
  }

  /** A setting has changed: clear the message about a mistake. */
  P.calm = function (name) {
    const r = room(name);
    if (r.status.state === "error" && r.show) r.show({ state: P.finished(r.trace || "") ? "done" : "idle", message: "" });
  };

  const LOST = "The server did not take this run: it is busy, or cannot be reached. Try again in a moment.";

  /** An event has ended, well or badly. If it ended without a word from the run, say so. */
  P.over = function (kind) {
    const r = room(kind);
    r.events = Math.max(0, (r.events || 0) - 1);
    setTimeout(() => { if (!r.events && r.status.state === "running") r.show({ state: "error", message: LOST }); }, 300);
  };

  /** Bring the picture into view if it is off the screen, as on a phone. */
  function reveal(kind) {
    const card = document.querySelector(`#${kind}-view .ds-card`);
    if (!card || !card.clientHeight) return;
    const { top, bottom } = card.getBoundingClientRect();
    if (bottom < 0 || top > innerHeight) card.scrollIntoView({ behavior: Draftscope.stillWanted() ? "auto" : "smooth" });
  }

  /** A run has been asked for: until the server reports on it, requests to pause or stop it wait. */
  P.begin = begin;
  function begin(kind) {
    const r = room(kind);
    reveal(kind);
    r.events = (r.events || 0) + 1;
    r.unheard = true;
    r.wish = null;
    if (r.view && r.view.goto) r.view.goto(Infinity);   // what was still playing is over
    r.show({ state: "running", message: "" });
  }

  const IDS = { watch: { run: "run", pause: "pause", step: "step", stop: "stop" },
    compare: { run: "race", pause: "race-pause", stop: "race-stop" }, whatif: { run: "whatif-run", stop: "whatif-stop" }, learn: {} };

  function buttons(kind) {
    const state = room(kind).status.state, busy = state === "running", paused = state === "paused";
    for (const [word, id] of Object.entries(IDS[kind])) {
      const button = document.getElementById(id);
      if (!button) return setTimeout(() => buttons(kind), 50);   // the page is still being built
      button.disabled = { run: busy, pause: !(busy || paused), step: busy, stop: !(busy || paused) }[word];
      if (word === "pause") label(button, paused ? "Resume" : "Pause");
    }
    return null;
  }

  function label(button, words) {
    const text = Array.from(button.childNodes).find((n) => n.nodeType === Node.TEXT_NODE && n.nodeValue.trim());
    if (text && text.nodeValue.trim() !== words) text.nodeValue = words;
  }

  // On the page a run begins with the click; the server's report follows. Pause and Resume are one button with two
  // meanings; the one that the reader saw at the click counts.
  document.addEventListener("click", function (event) {
    const button = event.target.closest && event.target.closest("button");
    for (const [kind, ids] of Object.entries(IDS)) {
      const r = rooms[kind];
      if (!button || !r || !r.trigger || button.disabled) continue;
      if (button.id === ids.run || (button.id === ids.step && r.status.state !== "paused")) P.pressed(kind);
      if (button.id === ids.run || button.id === ids.step) begin(kind);
      if (button.id === ids.stop) ask(r, "ask_stop");
      if (button.id !== ids.pause) continue;
      if (r.status.state === "running") ask(r, "ask_pause");
      else if (r.status.state === "paused") { begin(kind); r.trigger("ask_resume"); }
    }
  }, true);
})();

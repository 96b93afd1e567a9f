// Several runs side by side on one clock of measured compute time: the public mountCompare.
/** @import { Model } from "./view-types.d.ts" */
import { coalesce, el, followTheme, followWidth, setAttributes, stillWanted, writeText } from "./base.js";
import { makeGlossary } from "./glossary.js";
import { makeLane } from "./lane.js";
import { edgeKey, legend } from "./legend.js";
import { laneTitles, makeOutcome } from "./outcome.js";
import { tellingStep } from "./player.js";
import { RACE_PACES, raceClock, stepsBy } from "./race.js";
import { lineReader } from "./trace.js";
import { followKeys, icon, iconButton, largeButton } from "./transport.js";
import { duration } from "./words.js";

/** Splits one string for all lanes (lines with a "lane" key) into the entries of each lane; reads only new lines. */
function laneSplitter() {
  const reader = lineReader();
  let lanes = new Map();
  return function (whole) {
    const { reset, added } = reader.feed(whole);
    if (reset) lanes = new Map();
    for (const entry of added) {
      const name = String(entry.lane === undefined ? "run" : entry.lane);
      if (!lanes.has(name)) lanes.set(name, []);
      lanes.get(name).push(entry);
    }
    return { reset, lanes };
  };
}

/**
 * @param {Element} element
 * @param {{ autoplay?: boolean, keys?: boolean, outcome?: boolean, about?: (key: string) => string,
 *   watch?: ((lane: string) => void) | null }} [options]
 */
export function mountCompare(element, options) {
  // about(key): what a drafter does, in a sentence; watch(lane): brings a lane to Watch
  options = { keys: true, autoplay: true, outcome: true, about: () => "", watch: null, ...options };
  const root = el("section", { class: "ds ds-compare", "aria-label": "Drafters side by side" });
  element.replaceChildren(root);
  const glossary = makeGlossary(root), splitter = laneSplitter(), lanes = new Map();
  const held = el("div", { class: "ds-lanes" }), note = el("p", { class: "ds-message", role: "status", hidden: true });
  const outcome = makeOutcome(glossary), cover = el("div", { class: "ds-cover" });
  let live = false, asked = "idle", outcomeKey = "", countKey = "", ran = false;

  const end = () => Math.max(0, ...[...lanes.values()].map((one) => one.model.milliseconds));
  const clock = raceClock({ end, tick: () => draw() });
  const take = (ms) => { live = false; clock.stop(); clock.seek(ms); };
  const play = iconButton("play", "Play the race", () => { live = false; clock.toggle(); });
  play.classList.add("ds-play");
  const pace = el("select", { class: "ds-pace", "aria-label": "Pace of the race", onchange: () => {
    clock.pace = pace.value;
    draw();
  } },
    ...Object.entries(RACE_PACES).map(([value, [text]]) => el("option", { value, text })));
  const large = largeButton(root);
  const where = el("span", { class: "ds-where" }), word = el("span", { class: "ds-pace-word", role: "status" });
  const knob = el("input",
    { class: "ds-race-range", type: "range", min: 0, max: 1000, value: 0, step: 1, "aria-label": "Compute time",
      oninput: () => take((knob.value / 1000) * end()) });
  root.append(note, el("div", { class: "ds-card ds-race-card" },
    el("div", { class: "ds-transport", role: "group", "aria-label": "Race" },
      iconButton("first", "Start of the race", () => take(0)), play,
      iconButton("last", "End of the race", () => take(end())), pace, where, word, large.element), knob,
    outcome.verdict),
    cover, el("div", { class: "ds-race-room" }, held, outcome.element), legend(glossary, edgeKey(glossary)));
  const unfollow = followTheme(root), unwatch = followWidth(root);

  const ask = coalesce(() => draw());
  /** While the lanes are being written the axis grows in large steps, so that the bars rarely move. */
  const roomy = (length) => 100 * 1.3 ** Math.ceil(Math.log(Math.max(length, 100) / 100) / Math.log(1.3));

  function draw() {
    const length = end(), axis = live ? roomy(length) : Math.max(length, 1), redrawn = [];
    const tallest = Math.max(1, ...[...lanes.values()].map((one) => one.model.tallest));
    let behind = false;
    for (const one of lanes.values()) {
      const last = one.model.steps.length - 1;
      one.panels.line.scale(axis, tallest);
      // live: every new step of a lane for one frame; replay: the steps that are finished at the time of the clock
      const target = live ? Math.min(last, Math.max(one.drawn, -1) + 1) : stepsBy(one.model, clock.ms) - 1;
      const over = !live && !clock.playing && clock.ms >= length && target === last && last >= 0;
      if (one.show(target, over ? tellingStep(one.model.steps) : target)) redrawn.push(one);
      one.panels.line.clock(live ? one.model.milliseconds : Math.min(clock.ms, Math.max(one.model.milliseconds, 0)));
      if (live && target < last) behind = true;
      else settle(one);
    }
    scroll(redrawn);
    if (live) clock.ms = length;
    if (behind) ask();
    else if (live && asked !== "running") live = false;
    around(length);
  }

  /** Scroll the newest token of these lanes into view. Everything is written by now, so the layout is read once. */
  function scroll(drawn) {
    const tops = drawn.map((one) => one.panels.newest());
    drawn.forEach((one, i) => one.panels.strip.scroll(tops[i]));
  }

  function settle(one) {
    const next = one.wanted || (one.model.summary ? "done" : null);
    if (next && one.panels.tree.dataset.state !== next) one.panels.tree.setAttribute("data-state", next);
  }

  function around(length) {
    if (play.dataset.icon !== String(clock.playing)) {
      const label = clock.playing ? "Pause the race" : "Play the race";
      setAttributes(play, { "aria-label": label, title: label, "data-playing": clock.playing });
      play.dataset.icon = String(clock.playing);
      play.replaceChildren(icon(clock.playing ? "pause" : "play"));
    }
    if (pace.value !== clock.named) pace.value = clock.named;
    writeText(where, lanes.size ? `${duration(clock.ms)} of ${duration(length)} compute time` : "");
    setAttributes(knob, { "aria-valuetext": `${duration(clock.ms)} of ${duration(length)}` });
    knob.value = length ? Math.round((clock.ms / length) * 1000) : 0;
    /** @type {[string, Model][]} */
    const list = [...lanes.values()].map((one) => [one.name, one.model]);
    const key = list.map(([, m]) => `${m.steps.length}${m.summary ? "!" : ""}`).join();
    const shown = [...lanes.values()].map((one) => one.drawn + 1);
    if (countKey !== `${key} ${shown}`) { countKey = `${key} ${shown}`; outcome.count(list, shown); }
    const former = ran && asked === "running";          // a race is asked for, and the one before still on the screen
    setAttributes(root, { "data-former": former });
    outcome.element.hidden = !list.length || !options.outcome || former;
    outcome.verdict.hidden = outcome.element.hidden || clock.playing;
    // no result before its time: the lanes show the end first
    setAttributes(outcome.verdict, { "data-early": live || clock.playing || clock.ms < length });
    for (const one of lanes.values()) one.panels.rest(!clock.playing && !live);
    writeText(word, clock.playing ? `Replayed, ${RACE_PACES[clock.named][0]}; the times are real.` : "");
    if (key !== outcomeKey) {
      outcomeKey = key;
      const verdict = outcome.draw(list);
      const titles = laneTitles(list);
      for (const one of lanes.values()) { one.panels.strip.differ(verdict.index); one.call(titles.get(one.name)); }
    }
  }

  function renew(names) {
    for (const one of lanes.values()) one.panels.destroy();
    lanes.clear();
    held.replaceChildren();
    outcomeKey = countKey = "";
    clock.stop(); clock.ms = 0;
    live = asked === "running";
    names.forEach(open);
  }
  function open(name) {
    const one = makeLane(name, glossary, take, options.about, options.watch);
    one.wanted = asked === "idle" ? null : asked;
    one.panels.tree.setAttribute("data-state", asked);
    lanes.set(name, one);
    held.append(one.element);
  }

  const view = {
    feed(given) {
      let first = !lanes.size;
      if (typeof given === "string") {
        const split = splitter(given);
        if (split.reset) { renew([]); first = true; }
        for (const [name, entries] of split.lanes) {
          if (!lanes.has(name)) open(name);
          lanes.get(name).feedEntries(entries);
        }
      } else {
        const names = Object.keys(given || {});
        if (names.join("\n") !== [...lanes.keys()].join("\n")) renew(names);
        for (const name of names) lanes.get(name).feedText(String(given[name] || ""));
      }
      const bad = [...lanes.values()].find((one) => one.model.trouble);
      if (bad) view.setState("error", bad.model.trouble);
      const whole = lanes.size > 0 && [...lanes.values()].every((one) => one.model.summary);
      if ((first || !live) && whole && asked !== "running") {
        if (options.autoplay && first && !ran && !stillWanted()) { draw(); clock.play(); } else if (!clock.playing)
          clock.seek(end());
      }
      if (lanes.size) ran = false;
      // the last line has come: the lanes go to their end in the frame in which the page says so
      if (live && whole) { live = false; clock.ms = end(); ask.now(); } else ask();
    },
    setState(next, message, name) {
      note.textContent = message ? String(message) : "";
      setAttributes(note, { hidden: !message, "data-kind": next });
      for (const one of lanes.values()) {
        if (name !== undefined && one.name !== name) continue;
        one.wanted = next === "idle" ? null : next;
        if (next === "running" || next === "error") one.panels.tree.setAttribute("data-state", next);
      }
      if (name === undefined) {
        if (next === "running" && asked !== "running") { clock.stop(); live = ran = true; }
        asked = next;
      }
      ask();
    },
    /** Lay this element over the lanes and dim them, as in Watch. */
    cover(over, running = false) {
      cover.replaceChildren(...(over ? [over] : []));
      setAttributes(root, { "data-stale": Boolean(over) && !running });
    },
    play() { live = false; clock.play(); },
    pause: () => clock.pause(),
    seek: take,
    setLarge: (on) => large.set(on),
    get milliseconds() { return clock.ms; },
    get lanes() { return new Map([...lanes.values()].map((one) => [one.name, one.model])); },
    destroy() {
      clock.stop();
      ask.stop();
      unfollow();
      unwatch();
      large.forget();
      unkey();
      for (const one of lanes.values()) one.panels.destroy();
      root.remove();
    },
  };
  const unkey = options.keys ? followKeys(root, { move: (by) => take(nextMoment(by)), toggle: () => {
    live = false;
    clock.toggle();
  } }) : () => {};
  /** The next or the previous moment at which a lane finished a step. */
  function nextMoment(by) {
    const ends = [...lanes.values()].flatMap((one) => one.model.steps.map((step) => step.view.start + step.view.total))
      .sort((a, b) => a - b);
    const now = clock.ms;
    return by > 0 ? ends.find((ms) => ms > now + 1e-6) || end() : ends.reverse().find((ms) => ms < now - 1e-6) || 0;
  }
  draw();
  return view;
}

// Which step is on the screen, and when the next one comes. Pacing happens here, in the browser, and nowhere else.
(function (D) {
  "use strict";

  /** Paces by name: seconds a step; 0 = as fast as it ran. `stages`: show drafting, judging and committing one after the other. */
  D.PACES = {
    explain: { label: "explained", seconds: 3.2, stages: true },
    slow: { label: "1 step a second", seconds: 1, stages: true },
    brisk: { label: "4 steps a second", seconds: 0.25, stages: false },
    real: { label: "as fast as it ran", seconds: 0, stages: false },
  };
  const STAGES = [["draft", 0.3], ["judge", 0.32], ["commit", 0.38]];

  /** hooks: show(step, stage), changed(). stage: draft | judge | commit | null (all of it). */
  D.player = function (model, hooks) {
    let frame = 0, due = 0, chosen = null;
    const player = {
      step: -1, stage: null, playing: false, live: false, following: false, ending: false,

      get pace() { return chosen || (player.live ? "real" : "slow"); },
      get last() { return model.steps.length - 1; },
      /** The last step with something to look at: at the end of a text there may be no room left for a draft. */
      get telling() {
        const at = model.steps.findLastIndex((step) => step.nodes.token.length);
        return at < 0 ? player.last : at;
      },
      /** Steps have come that are about to be drawn. */
      get behind() { return player.following && player.pace === "real" && player.step < player.last; },

      setPace(name) { chosen = name in D.PACES ? name : null; due = 0; hooks.changed(); wake(); },
      /** The engine is writing: follow it. */
      follow() {
        player.live = player.following = true; player.ending = false; due = 0;
        player.playing = !model.summary;             // what is on the screen is an older run: wait for the new one
        if (player.stage) show(player.step, null);
        hooks.changed(); wake();
      },
      /** The engine has stopped writing: draw what has come, then stand still. */
      settle() {
        player.ending = true;
        if (player.step >= player.last) end();
        hooks.changed(); wake();
      },
      /** New steps have come. */
      arrived() {
        if (player.following && player.step < player.last) player.playing = player.live = true;
        wake();
      },
      play() {
        if (!model.steps.length) return;
        if (player.step >= player.last && !player.live) player.step = -1;
        player.playing = true; due = 0; player.following = player.live;
        hooks.changed(); wake();
      },
      pause() { player.playing = player.following = false; show(player.step, null); hooks.changed(); },
      toggle() { if (player.playing) player.pause(); else player.play(); },
      seek(step) {
        if (!model.steps.length) return;
        const at = D.clamp(Math.round(step), 0, player.last);
        player.playing = player.following = player.live && at === player.last;
        show(at, null);
        hooks.changed();
      },
      move(by) { player.seek((player.step < 0 ? 0 : player.step) + by); },
      reset() { player.step = -1; player.stage = null; player.playing = player.following = player.live; due = 0; },
      stop() { cancelAnimationFrame(frame); frame = 0; player.playing = false; },
    };

    function show(step, stage) { player.step = step; player.stage = stage; hooks.show(step, stage); }
    function end() { if (player.live || !player.stage) player.playing = false; player.live = false; }
    function wake() { if (!frame && player.playing) frame = requestAnimationFrame(tick); }

    function tick(now) {
      frame = 0;
      if (!player.playing) return;
      if (now >= due) advance(now);
      if (player.stage || player.step < player.last || (now < due && !player.live)) return wake();
      if (!player.live || player.ending) end();
      hooks.changed();
    }

    function advance(now) {
      const pace = D.PACES[player.pace];
      const position = STAGES.findIndex(([name]) => name === player.stage);
      if (position >= 0 && position + 1 < STAGES.length) {          // the next stage of the same step
        const [name, share] = STAGES[position + 1];
        show(player.step, name);
        due = now + pace.seconds * 1000 * share;
        return;
      }
      if (player.step >= player.last) {
        if (player.stage) show(player.step, null);
        return;
      }
      const next = model.steps[player.step + 1];
      if (pace.stages && !D.stillWanted()) {
        const at = next.view.count ? 0 : 2;
        show(player.step + 1, STAGES[at][0]);
        due = now + pace.seconds * 1000 * (at ? 0.6 : STAGES[0][1]);
      } else {
        show(player.step + 1, null);
        due = pace.seconds ? now + pace.seconds * 1000 : player.live ? 0 : Math.max(now, due) + Math.min(next.view.total, 2000);
        if (!pace.seconds && due < now - 100) due = now;
      }
    }
    return player;
  };
})(globalThis.Draftscope);

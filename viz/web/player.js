// Decides which step is on the screen and when the next one follows. All pacing happens here, in the browser.
/** @import { Step, Summary } from "./types.d.ts" */
/** @import { PlayerHooks, Stage } from "./view-types.d.ts" */
import { clamp, stillWanted } from "./base.js";
import { wasKept } from "./trace.js";

/**
 * Paces by name: seconds per step, 0 = as fast as it ran; or `stages`: seconds each for draft, judge and commit.
 * @type {Record<string, { label: string, word: string, stages?: number[], seconds?: number }>}
 */
export const PACES = {
  explain: { label: "explained", word: "Slowed down to explain", stages: [1.4, 1.8, 4] },
  slow: { label: "1 step a second", word: "Slowed to one step a second", stages: [0.3, 0.32, 0.38] },
  brisk: { label: "4 steps a second", word: "Four steps a second", seconds: 0.25 },
  real: { label: "as fast as it ran", word: "Replayed as fast as it ran", seconds: 0 },
};
const BEAT = 0.08;        // shortest time between two verdicts, in seconds

/**
 * The scenes of a step, in order: [stage, seconds, verdicts shown so far].
 * @type {(step: Step, seconds: number[]) => [Stage, number, number?][]}
 */
function scenes(step, [draft, judge, commit]) {
  if (!step.view.count) return [["commit", 0.6 * (draft + judge + commit)]];
  const count = step.judgements.length, beats = Math.min(count, Math.floor(judge / BEAT));
  /** @type {[Stage, number, number][]} */
  const verdicts = Array.from({ length: beats + 1 },
    (_, beat) => ["judge", judge / (beats + 1), beats && Math.round((count * beat) / beats)]);
  return [["draft", draft], ...verdicts, ["commit", commit]];
}

const forks = (step) => [...step.view.children.values()].some((kids) => kids.length > 1);
const refuses = (step) => step.judgements.some((judgement) => !wasKept(judgement));

/** Whether a coin refused a guess without siblings: the plainest refusal, because nothing was taken from p before. */
const refusesOneAlone = ({ judgements, nodes, view }) => judgements.some((judgement) => !wasKept(judgement) &&
  typeof judgement.coin === "number" && judgement.accept > 0 &&
  view.children.get(nodes.parent[judgement.node])?.length === 1);

/**
 * Index of the most instructive step, judged by (in this order) a coin that refused a guess without siblings, a
 * refusal, two kept tokens, a fork, a token of the target, a coin, a long path; the latest of equal steps. -1: no step.
 * @type {(steps: Step[]) => number}
 */
export function tellingStep(steps) {
  const worth = (step) => [refusesOneAlone(step), refuses(step), step.view.path.length > 1, forks(step),
    Boolean(step.view.final),
    step.judgements.some((judgement) => typeof judgement.coin === "number")]
    .reduce((sum, has) => 2 * sum + has, 0) * 1000 + step.view.path.length + (step.view.count ? 0.5 : 0);
  const worths = steps.map(worth);
  return worths.lastIndexOf(Math.max(...worths));
}

/**
 * The reader's own step if it has a refusal, and a fork if the telling step has one; otherwise the telling step.
 * @type {(steps: Step[], own: number) => number}
 */
export function stepToShow(steps, own) {
  const best = tellingStep(steps), good = (step) => step && refuses(step) && (forks(step) || !forks(steps[best]));
  return good(steps[own]) ? own : best;
}

const againWord = (step, number) =>
  `The run is over; step ${number} ${refuses(step) ? "shows a refusal" : "tells most"}.`;

/**
 * hooks: show(step, stage, verdicts), changed(). stage: draft | judge | commit | null (all of it); verdicts: how many
 * of the step's judgements "judge" has shown.
 * @param {{ steps: Step[], summary: Summary | null }} model
 * @param {PlayerHooks} hooks
 */
export function makePlayer(model, hooks) {
  let frame = 0, due = 0, chosen = null, queue = [], opening = false, explaining = false, back = false;
  const player = {
    step: -1, stage: null, playing: false, live: false, following: false, ending: false,

    get pace() { return chosen || (player.live ? "real" : explaining ? "explain" : "slow"); },
    /** The last step whose outcome is visible. */
    get finished() { return player.step - (player.stage === "draft" || player.stage === "judge" ? 1 : 0); },
    get last() { return model.steps.length - 1; },
    /** How the time on the screen relates to the run's own, in words; "" while nothing moves. */
    get word() {
      if (!player.playing) return back ? againWord(model.steps[player.step], player.step + 1) : "";
      if (player.live) return "Live: each step as it is computed.";
      const changed = opening && player.step > Math.max(...explained());
      return `${changed ? "From here one step a second" : PACES[player.pace].word}; the times are real.`;
    },
    /** The step to show when nothing moves. */
    get telling() { return tellingStep(model.steps); },
    /** Whether steps have arrived that are not drawn yet. */
    get behind() { return player.following && player.pace === "real" && player.step < player.last; },

    setPace(name) { chosen = name in PACES ? name : null; takeOver(); due = 0; queue = []; hooks.changed(); wake(); },
    /** The engine is writing: follow it. */
    follow() {
      player.live = player.following = true; player.ending = false; due = 0; takeOver();
      player.playing = !model.summary;             // a finished run is on the screen: wait for the new one
      if (player.stage) show(player.step, null);
      hooks.changed(); wake();
    },
    /** The engine has stopped writing: draw the steps that have arrived, then stop. */
    settle() {
      player.ending = true;
      if (player.step >= player.last) end();
      hooks.changed(); wake();
    },
    /** New steps have arrived. */
    arrived() {
      if (player.following && player.step < player.last) player.playing = player.live = true;
      wake();
    },
    play() {
      if (!model.steps.length) return;
      opening = player.step < 0 && !player.live && !chosen;
      if (player.step >= player.last && !player.live) player.step = -1;
      player.playing = true; due = 0; player.following = player.live;
      hooks.changed(); wake();
    },
    pause() { takeOver(); player.playing = player.following = false; show(player.step, null); hooks.changed(); },
    toggle() { if (player.playing) player.pause(); else player.play(); },
    seek(step) {
      if (!model.steps.length) return;
      takeOver();
      const at = clamp(Math.round(step), 0, player.last);
      player.playing = player.following = player.live && at === player.last;
      show(at, null);
      hooks.changed();
    },
    move(by) { player.seek((player.step < 0 ? 0 : player.step) + by); },
    reset() {
      takeOver();
      queue = [];
      player.step = -1;
      player.stage = null;
      player.playing = player.following = player.live;
      due = 0;
    },
    stop() { cancelAnimationFrame(frame); frame = 0; player.playing = false; },
  };

  function show(step, stage, verdicts) {
    if (stage === null) queue = [];
    player.step = step; player.stage = stage;
    hooks.show(step, stage, verdicts);
  }
  /** What an opening explains, while other steps go by at its usual pace: the first draft, and the plainest refusal. */
  function explained() {
    const alone = model.steps.findIndex(refusesOneAlone);
    return [model.steps.findIndex((step) => step.view.count), alone < 0 ? model.steps.findIndex(refuses) : alone];
  }
  /** Any action of the reader ends the opening; from then on only the reader's own actions start a replay. */
  function takeOver() { opening = explaining = back = false; }
  function end() {
    if (player.live || !player.stage) player.playing = false;
    player.live = false;
    takeOver();
  }
  function wake() { if (!frame && player.playing) frame = requestAnimationFrame(tick); }

  function tick(now) {
    frame = 0;
    if (!player.playing) return;
    if (now >= due) advance(now);
    if (player.stage || player.step < player.last || (now < due && !player.live)) return wake();
    const opened = opening;
    if (!player.live || player.ending) end();
    if (opened && !opening) {
      back = player.telling < player.last;
      show(player.telling, null);        // who comes late sees a refusal, too
    }
    hooks.changed();
  }

  function advance(now) {
    if (!queue.length && player.step >= player.last) {
      if (!player.stage) return;
      show(player.step, null);
      return;
    }
    if (!queue.length) begin(now);
    if (!queue.length) return;
    const [stage, seconds, verdicts] = queue.shift();
    show(player.step, stage, verdicts);
    due = now + seconds * 1000;
  }

  /** Begin the next step: show all of it, or put its scenes into the queue. */
  function begin(now) {
    const at = player.step + 1, next = model.steps[at];
    explaining = opening && explained().includes(at);
    const { stages, seconds } = PACES[player.pace];
    if (stages && !stillWanted()) {
      player.step = at;
      queue = scenes(next, stages);
      return;
    }
    show(at, null);
    const wait = stages ? 1000 * stages.reduce((sum, part) => sum + part, 0) : 1000 * seconds;
    due = wait ? now + wait : player.live ? 0 : Math.max(now, due) + Math.min(next.view.total, 2000);
    if (!wait && due < now - 100) due = now;
  }
  return player;
}

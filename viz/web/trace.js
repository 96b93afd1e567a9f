// Reads the append-only NDJSON of a run, as far as it has arrived.
/** @import { Final, Judgement, Run, StageTimes, Step, Verifier } from "./types.d.ts" */
import { overlap, spansOf } from "./tracks.js";

/** Follows one growing string. feed(whole) parses only what is new: {reset, added: [objects], trouble}. */
export function lineReader() {
  let seen = "", parsed = 0;
  return {
    feed(whole) {
      const reset = !whole.startsWith(seen);
      if (reset) parsed = 0;
      seen = whole;
      const added = [];
      let trouble = null;
      for (;;) {
        const end = whole.indexOf("\n", parsed);
        if (end < 0) break;                       // a line that is not finished waits for its rest
        const line = whole.slice(parsed, end).trim();
        parsed = end + 1;
        if (!line) continue;
        try {
          const value = JSON.parse(line);
          if (value && typeof value === "object") added.push(value);
          else trouble = "A line of the trace is not an object.";
        } catch {
          trouble = "A line of the trace cannot be read.";
        }
      }
      return { reset, added, trouble };
    },
  };
}

/**
 * Whether the rule, with this drafter, leaves the text as it was, but for rounding where the target computes in half
 * precision.
 * @type {(verifier: Pick<Verifier, "lossless" | "up_to_rounding">) => boolean}
 */
export const isExact = (verifier) => Boolean(verifier.lossless || verifier.up_to_rounding);
/**
 * @type {(verifier: Pick<Verifier, "lossless" | "up_to_rounding" | "law">) =>
 *   "lossless" | "equal up to rounding" | "another law" | "lossy"}
 */
export const exactnessOf = (verifier) => (verifier.lossless ? "lossless" : verifier.up_to_rounding
  ? "equal up to rounding" : verifier.law ? "another law" : "lossy");

/**
 * The law that an exact rule keeps under a constraint, in words; "" where there is none. Runs that do not name it are
 * of masked decoding.
 * @type {(run: Pick<Run, "verifier" | "constraint">) => string}
 */
export const constrainedLaw = ({ verifier, constraint }) => (constraint && isExact(verifier)
  ? constraint.law || "masked decoding" : "");

/**
 * Whether this run is plain decoding, in which nothing is drafted.
 * @type {(run: Run | null) => boolean}
 */
export const isPlainRun = (run) => Boolean(run) && (run.drafter.family === "none" || run.drafter.key === "none");

/**
 * The stages of a step added up, in milliseconds.
 * @type {(step: { milliseconds?: StageTimes }) => number}
 */
const spentOf = ({ milliseconds: ms = {} }) => (ms.draft || 0) + (ms.verify || 0) + (ms.judge || 0) +
  (ms.commit || 0);

/** Milliseconds in which two stages ran at once. */
const overlapping = (step) => (step.spans ? Math.min((overlap(spansOf(step)) || { both: 0 }).both, spentOf(step)) : 0);

/**
 * What a final token shows that adds nothing to the text yet: its bytes, which stand among the favourites of its place.
 */
function unfinished(step, { token, parent }) {
  const place = (step.distributions || []).find((one) => one.node === parent);
  const row = place && (place.p || []).find((one) => one[0] === token);
  return row ? row[1] : "";
}

/**
 * Adds `view` to a step, once, when it arrives: what drawing needs beyond the step's fields. run: the run line.
 * @type {(step: Step, firstIndex: number, run?: Run | null) => Step}
 */
export function enrich(step, firstIndex, run = null) {
  const nodes = step.nodes, count = nodes.token.length;
  nodes.source = nodes.source || nodes.token.map(() => "");
  const children = new Map([[-1, []]]);
  for (let i = 0; i < count; i++) {
    const parent = nodes.parent[i];
    if (!children.has(parent)) children.set(parent, []);
    children.get(parent).push(i);
  }
  const path = [];
  for (let i = 0; i < count; i++) if (nodes.status[i] === "accepted") path.push(i);
  path.sort((a, b) => nodes.depth[a] - nodes.depth[b]);
  const judged = new Map();
  step.judgements.forEach((judgement, order) => {
    if (!judged.has(judgement.node)) judged.set(judgement.node, []);
    judged.get(judgement.node).push({ ...judgement, order, kept: wasKept(judgement) });
  });
  const tokens = step.output.tokens.length, hasFinal = step.output.final !== "none" && tokens > 0;
  const final = hasFinal
    ? { token: step.output.tokens[tokens - 1], kind: step.output.final,
      parent: path.length ? path[path.length - 1] : -1 }
    : null;
  if (final) final.piece = step.output.pieces[tokens - 1] || unfinished(step, final);
  if (final) final.look = count ? final.kind : "plain";    // where nothing was drafted, the token is no bonus
  const spent = step.milliseconds || {}, work = spentOf(step);
  step.view = {
    run, count, children, path, judged, final, firstIndex, tokens,
    distributions: new Map((step.distributions || []).map((d) => [d.node, d])),
    work, total: spent.total === undefined ? work - overlapping(step) : spent.total,      // ms on the clock
  };
  return step;
}

/**
 * Attributes of a drawn final token: its status, and its look if that is different.
 * @type {(final: Final) => object}
 */
export const finalMarks = ({ kind, look }) => ({ "data-status": kind, "data-look": look === kind ? null : look });

/** @type {(judgement: Judgement) => boolean} */
export const wasKept = (judgement) => (judgement.coin === null || judgement.coin === undefined ? judgement.accept >= 1
  : judgement.coin < judgement.accept);

/**
 * One run, fed with its string so far. The model holds run, steps and summary; milliseconds: its compute time so far.
 */
export function traceModel() {
  const reader = lineReader();
  const model = {
    run: null, steps: [], summary: null, trouble: null, tokens: 0, passes: 0, prefill: 0, milliseconds: 0, tallest: 0,
    clear() {
      model.run = model.summary = model.trouble = null;
      model.steps = []; model.tokens = model.passes = model.prefill = model.milliseconds = model.tallest = 0;
    },
    /**
     * The prompt was read in so many ms: the clock of the run begins with them. A trace made earlier tells it at its
     * end.
     */
    read(ms) {
      if (!(ms > 0) || model.prefill) return;
      model.prefill = ms;
      model.milliseconds += ms;
      for (const step of model.steps) step.view.start += ms;
    },
    add(entry) {
      if (entry.kind === "run") {
        if (entry.schema !== 1) model.trouble = "This trace was written for another version.";
        model.run = entry;
      } else if (entry.kind === "step") {
        try {
          enrich(entry, model.tokens, model.run);
        } catch { model.trouble = "A step of the trace lacks a field."; return; }
        model.read(entry.prefill);
        entry.view.root = model.lastToken();
        entry.view.start = model.milliseconds;
        model.milliseconds += entry.view.total;
        model.tokens += entry.view.tokens;
        model.passes += entry.passes ? entry.passes.target || 0 : 1;
        entry.view.passes = model.passes;                  // of the target, this step's included
        model.tallest = Math.max(model.tallest, entry.view.tokens);
        model.steps.push(entry);
      } else if (entry.kind === "summary") {
        model.summary = entry;
        if (entry.stop === "length" && model.steps.some(({ view }) => view.count))
          model.steps.at(-1).view.isLast = true;
        model.read((entry.milliseconds || {}).prefill);
      }
    },
    /** Returns {reset, added: number of new steps}. */
    feed(whole) {
      const news = reader.feed(String(whole || ""));
      if (news.reset) model.clear();
      const before = model.steps.length;
      if (news.trouble) model.trouble = news.trouble;
      news.added.forEach(model.add);
      return { reset: news.reset, added: model.steps.length - before };
    },
    /** The last token so far, the root of the next step. */
    lastToken() {
      const written = model.steps.findLast((step) => step.output.tokens.length);
      const tokens = (written ? written.output.tokens : model.run && model.run.prompt && model.run.prompt.tokens) || [];
      return tokens.length ? tokens[tokens.length - 1] : null;
    },
    /** The piece at the root of a step: the last token committed before it. */
    rootPiece(index) {
      for (let i = index - 1; i >= 0; i--) {
        const step = model.steps[i], count = step.output.tokens.length;
        if (count) return model.outputFace(step, count - 1);
      }
      const prompt = model.run && model.run.prompt.pieces;
      return prompt && prompt.length ? prompt[prompt.length - 1] : "";
    },
    /**
     * What the j-th output token of a step shows by itself: its piece, or its bytes while a character is unfinished.
     */
    outputFace(step, j) {
      const { final, path } = step.view;
      if (final && j === step.output.tokens.length - 1) return final.piece;
      return step.output.pieces[j] || (j < path.length ? step.nodes.piece[path[j]] : "");
    },
    /** Status of the j-th output token of a step. */
    outputStatus(step, j) {
      return step.view.final && j === step.output.tokens.length - 1 ? step.view.final.kind : "accepted";
    },
    /** The look of that token: its status, or "plain" where nothing was drafted. */
    outputLook(step, j) {
      return step.view.final && j === step.output.tokens.length - 1 ? step.view.final.look : "accepted";
    },
    /** The node that became the j-th output token of a step ("final" for the last one). */
    outputNode(step, j) {
      if (step.view.final && j === step.output.tokens.length - 1) return "final";
      return j < step.view.path.length ? step.view.path[j] : null;
    },
    /** Step that wrote the output token with this index (binary search). */
    stepOfIndex(index) {
      let low = 0, high = model.steps.length - 1;
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (model.steps[middle].view.firstIndex <= index) low = middle; else high = middle - 1;
      }
      return high < 0 ? null : low;
    },
  };
  return model;
}

// The result of a race: a table, and a sentence on whether the lossless lanes wrote the same text.
/** @import { Drafter } from "./types.d.ts" */
/** @import { Glossary, Model } from "./view-types.d.ts" */
import { el, setAttributes, writeText } from "./base.js";
import { FASTER } from "./speed.js";
import { exactnessOf, isExact, isPlainRun } from "./trace.js";
import { duration, oneLine, plural, quote, visible } from "./words.js";

/**
 * A lane in numbers, after its first `shown` steps.
 * @type {(model: Model, shown?: number) => any}
 */
export function laneNumbers(model, shown = model.steps.length) {
  const steps = model.steps.slice(0, shown), last = steps.at(-1), spent = { draft: 0, verify: 0 };
  const summary = steps.length === model.steps.length ? model.summary : null;
  const tokens = last ? last.view.firstIndex + last.view.tokens : 0;
  const milliseconds = last ? last.view.start + last.view.total : 0;
  for (const step of steps) {
    spent.draft += (step.milliseconds && step.milliseconds.draft) || 0;
    spent.verify += (step.milliseconds && step.milliseconds.verify) || 0;
  }
  return {
    speed: summary ? summary.tokens_per_second : milliseconds > 0 ? (1000 * tokens) / milliseconds : null,
    mean: steps.length ? tokens / steps.length : null,
    calls: summary ? summary.target_calls : last ? last.view.passes : 0,
    tokens, steps: steps.length, draft: spent.draft, verify: spent.verify,
    drafts: !isPlainRun(model.run),
  };
}

/** The label of an option. Traces from before options had labels call the most nodes of a tree its budget. */
const optionName = (drafter, key) => oneLine((drafter.labels || {})[key]
  || (key === "budget" ? "nodes" : key.replaceAll("_", " ")));

/**
 * A drafter's options, and its parts where they are not the usual ones: [[name, value]] in words.
 * @type {(drafter: Drafter) => [string, string][]}
 */
export const settingsOf = (drafter) => [...Object.entries(drafter.options || {}), ...Object.entries(drafter.parts || {})
  .filter(([role, name]) => name !== role)]
  .map(([key, value]) => [optionName(drafter, key), visible(String(value))]);

/**
 * The displayed names of lanes: their drafters; lanes with the same drafter also name what differs between them, as
 * in "Chain, length 4". lanes: [[name, model]].
 * @type {(lanes: [string, Model][]) => Map<string, string>}
 */
export function laneTitles(lanes) {
  const runs = lanes.filter(([, { run }]) => run), written = (value) => visible(String(value));
  // "draft-3m" says by itself that it is a draft
  const named = (label, value) => (value.startsWith(label) ? value : `${label} ${value}`);
  return new Map(lanes.map(([name, { run }]) => {
    if (!run) return [name, oneLine(name)];
    const title = oneLine(run.drafter.title || run.drafter.key);
    const twins = runs.filter(([, other]) => other.run.drafter.key === run.drafter.key).map(([, other]) => other.run);
    if (twins.length < 2) return [name, title];
    const all = ({ drafter }) => ({ ...drafter.options, ...drafter.parts }), own = all(run);
    const differs = Object.keys(own).filter((key) => twins.some((twin) => all(twin)[key] !== own[key]));
    const said = differs.map((key) => named(optionName(run.drafter, key), written(own[key])));
    if (twins.some((twin) => twin.verifier.key !== run.verifier.key))
      said.push(`rule ${oneLine(run.verifier.title || run.verifier.key)}`);
    return [name, said.length ? [title, ...said].join(", ") : `${title} (${oneLine(name)})`];
  }));
}

const isPlain = ({ run }) => isPlainRun(run);
const outputTokens = (model) => model.steps.flatMap((step) => step.output.tokens);

/**
 * The gap between the target's two best logits before the token with this index; null if the trace does not hold it.
 */
function marginAt(model, index) {
  const step = model.steps[model.stepOfIndex(index)], j = index - step.view.firstIndex;
  const place = step.view.distributions.get(j === 0 ? -1 : step.view.path[j - 1]);
  const top = ((place && place.p) || []).map((entry) => entry[2]).sort((a, b) => b - a);
  const heat = model.run.sampling.temperature || 1;   // at temperature 0 the trace shows the plain softmax
  return top.length > 1 && top[1] > 0 ? heat * Math.log(top[0] / top[1]) : null;
}

/**
 * lanes: [[name, model]]. Returns {text, index: where they part or null, alike: true | false | null}.
 * @param {[string, Model][]} lanes
 */
export function compareTexts(lanes) {
  const ran = lanes.filter(([, model]) => model.run);
  const exact = ran.filter(([, model]) => isExact(model.run.verifier));
  const verdict = exact.length < 2 ? { text: "", index: null, alike: null } : compareExact(exact);
  const left = [["Lossy", "lossy"], ["Of another law", "another law"]].map(([said, word]) => {
    const others = ran.filter(([, model]) => exactnessOf(model.run.verifier) === word);
    return others.length ? `${said}, so left out: ${others.map(([name]) => oneLine(name)).join(", ")}.` : "";
  });
  return { ...verdict, text: [verdict.text, ...left].filter(Boolean).join(" ") };
}

/** Whether one seed means one text under this rule; in traces that do not say so, whether no coin was ever tossed. */
const seedDecides = ({ run, steps }) => (typeof run.verifier.same_text === "boolean" ? run.verifier.same_text
  : steps.every((step) => step.judgements.every(({ coin }) => coin === null || coin === undefined)));

/** Lossless lanes must write the same text at temperature 0, and above it where the seed alone decides the text. */
function compareExact(exact) {
  const greedy = exact.every(([, model]) => model.run.sampling.temperature === 0);
  const bound = greedy ? exact : exact.filter(([, model]) => seedDecides(model));
  if (exact.some(([, model]) => model.run.verifier.up_to_rounding)) return compareRounded(exact, greedy);
  if (bound.length < 2)
    return { text: "Sampled: every lossless lane draws from the same distribution, each with random numbers of its " +
      "own, so the texts may differ.", index: null, alike: null };
  if (bound.length === exact.length) return compareBound(bound, "lossless lanes");
  const verdict = compareBound(bound, "lanes whose text the seed decides");
  return { ...verdict, text: `${verdict.text} The other lossless lanes draw with random numbers of their own.` };
}

/** In half precision the same text is a finding, and another one no fault. */
function compareRounded(exact, greedy) {
  if (!greedy)
    return { text: "Sampled in half precision: up to rounding, every lane that is not lossy draws from the same " +
      "distribution, so the texts may differ.", index: null, alike: null };
  const verdict = compareBound(exact, "lanes that are not lossy");
  return verdict.alike === false ? { ...verdict, alike: null,
    text: `${verdict.text} In half precision, rounding may part them.` } : verdict;
}

/** who: the name of these lanes in the sentence. */
function compareBound(bound, who) {
  const [first, ...rest] = bound.map(([name, model]) => [name, model, outputTokens(model)]);
  const finished = bound.every(([, model]) => model.summary);
  let least = Infinity, found = null;
  for (const lane of rest) {
    const shared = Math.min(first[2].length, lane[2].length);
    for (let i = 0; i < shared && i < least; i++) if (first[2][i] !== lane[2][i]) { least = i; found = lane; }
  }
  if (!found) {
    const lengths = new Set([first, ...rest].map((lane) => lane[2].length));
    if (finished && lengths.size > 1) return { text: `As far as they go, all ${who} wrote the same text; some ` +
      `wrote on for longer.`, index: null, alike: true };
    const cold = bound[0][1].run.sampling.temperature === 0 ? ", at temperature 0" : "";
    return { text: finished ? `All ${bound.length} ${who} wrote the same text, token for token${cold}.`
      : `So far all ${who} write the same text.`, index: null, alike: true };
  }
  const piece = ([, model]) => {
    const step = model.steps[model.stepOfIndex(least)];
    return quote(model.outputFace(step, least - step.view.firstIndex));
  };
  const margin = marginAt(first[1], least);
  const close = margin === null ? "" : ` There the target’s two best tokens were ` +
    `${margin < 0.001 ? margin.toExponential(1) : margin.toFixed(3)} apart (logits).`;
  const wrote = (lane) => `${oneLine(lane[0])} wrote ${piece(lane)}`;
  const text = `The texts part at token ${least + 1}: ${wrote(first)}, ${wrote(found)}.${close}`;
  return { text, index: least, alike: false };
}

/** The fastest lane in one sentence, once all are finished; "" before. titles: from laneTitles. */
function winnerOf(lanes, titles) {
  const over = lanes.filter(([, { summary }]) => summary && summary.stop !== "cancelled"
    && summary.tokens_per_second > 0);
  if (over.length < lanes.length || lanes.length < 2) return "";
  const speed = ([, { summary }]) => summary.tokens_per_second;
  const best = over.reduce((a, b) => (speed(b) > speed(a) ? b : a));
  const plain = over.find(([, model]) => isPlain(model)), [name, { summary }] = best;
  const second = over.filter((one) => one !== best).reduce((a, b) => (speed(b) > speed(a) ? b : a));
  const drafting = plain === best ? second : best;
  if (plain && speed(drafting) < FASTER * speed(plain)) {
    const ratio = speed(drafting) / speed(plain), told = `${ratio.toFixed(2)}×`;
    return `Is it faster? No: the best of the drafters, ${titles.get(drafting[0])}, ` +
      `${ratio > 0.95 ? `is about as fast (${told})` : `reaches ${told} the speed`}. None was worth its work here. ` +
      "Each lane ran once; on a busy machine races may end otherwise.";
  }
  const passes =
    `${plural(summary.new_tokens, "token")} in ${plural(summary.target_calls, "pass", "passes")}`;
  const other = plain || second, ratio = (speed(best) / speed(other)).toFixed(1);
  const beside = plain ? "plain decoding" : titles.get(second[0]);
  return `Fastest: ${titles.get(name)}, ${ratio} times as fast as ${beside}: ` +
    `${passes}${plain ? ` instead of ${summary.new_tokens}` : ""}. ` +
    "Each lane ran once; close races may end otherwise.";
}

/** @param {Glossary} glossary */
export function makeOutcome(glossary) {
  const line = el("p", { class: "ds-same", role: "status" }), winner = el("p", { class: "ds-winner", role: "status" });
  const body = el("tbody", {});
  const head = [["lane"], ["tokens/s"], ["against plain"], ["tokens a step", "mean accepted"],
    ["passes", "target calls"], ["draft a step"], ["verify a step"]];
  const table = el("table", { class: "ds-outcome" }, el("caption", { text: "The lanes in numbers" }),
    el("thead", {}, el("tr", {},
      ...head.map(([text, word]) => el("th", { scope: "col" }, glossary.term(word || text, text))))), body);
  return {
    verdict: el("div", { class: "ds-verdict" }, winner, line),
    element: el("div", { class: "ds-card ds-outcome-card" },
      el("div", { class: "ds-scroll", tabindex: 0, role: "group", "aria-label": "The lanes in numbers" }, table)),
    /** Returns the result of comparing the texts. */
    draw(lanes) {
      const titles = laneTitles(lanes), verdict = compareTexts(lanes.map(([name, model]) => [titles.get(name), model]));
      writeText(winner, winnerOf(lanes, titles));
      writeText(line, `${verdict.alike && lanes.every(([, model]) => model.summary) ? "✓ " : ""}${verdict.text}`);
      setAttributes(line, { "data-alike": verdict.alike });
      return verdict;
    },
    /**
     * The table, as far as the lanes have come: shown holds the number of steps that each of them shows. Their speeds
     * are compared once all of them are over.
     */
    count(lanes, shown) {
      const titles = laneTitles(lanes), rows = lanes.map(([name, model], i) => [name, laneNumbers(model, shown[i])]);
      const whole = lanes.every(([, model], i) => model.summary && shown[i] >= model.steps.length);
      const plain = lanes.findIndex(([, model]) => isPlain(model)), base = plain < 0 ? null : rows[plain][1].speed;
      const best = Math.max(...rows.map(([, n]) => n.speed || 0));
      while (body.rows.length > rows.length) body.lastChild.remove();
      while (body.rows.length < rows.length)
        body.append(el("tr", {}, el("th", { scope: "row" }), ...head.slice(1).map(() => el("td", {}))));
      rows.forEach(([name, n], i) => {
        const each = (ms) => (ms === null || !n.steps ? "–" : duration(ms / n.steps));
        const cells = [titles.get(name), n.speed === null ? "–" : n.speed.toFixed(1), whole && base && n.speed
          ? `${(n.speed / base).toFixed(2)}×` : "–", n.mean === null ? "–" : n.mean.toFixed(2), String(n.calls),
          each(n.drafts ? n.draft : null), each(n.verify)];
        setAttributes(body.rows[i], { "data-best": n.speed > 0 && n.speed === best });
        cells.forEach((text, k) => writeText(body.rows[i].cells[k], text));
      });
    },
  };
}

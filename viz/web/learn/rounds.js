// A server writes several texts while it reads a long prompt: the rows of each round, and how long the texts wait.
import { el, svgEl, writeText } from "../base.js";
import { chartKey, chartWidth, lessonChart, lessonSlider } from "./chart.js";
import { roofline } from "./law.js";

const MODEL = 8e9, TEXTS = 32, DRAFT = 7, PROMPT = 16384, SHOWN = 10, HIGH = 18, GAP = 5, LEFT = 76;
const KINDS = { decode: "last tokens of the texts", verify: "drafts", prefill: "the long prompt" };
/** @typedef {{ decode: number, verify: number, prefill: number }} Round */

/** @type {(round: Round) => number} */
const total = ({ decode, verify, prefill }) => decode + verify + prefill;

/**
 * The rounds until the prompt is read, cut as the engine's batch cuts them (`Budget`): drafts leave `part` rows of a
 * round to the prompt and are one token long at least; the prompt takes what they leave.
 * @param {{ rows: number, part: number, texts: number, draft: number, prompt: number }} plan
 * @returns {Round[]}
 */
export function roundsOf({ rows, part, texts, draft, prompt }) {
  const deepest = Math.max(1, Math.floor((rows - part) / texts) - 1), verify = texts * Math.min(draft, deepest);
  const most = Math.max(part, rows - texts - verify), found = [];
  for (let left = prompt; left > 0; left -= most)
    found.push({ decode: texts, verify, prefill: Math.min(left, most) });
  return found;
}

/**
 * spec: {machine: {name, bandwidth, arithmetic, sheet}}.
 * @param {any} spec
 * @param {{ changed(): void }} hooks
 */
export function lessonRounds({ machine }, { changed }) {
  const now = { rows: 512, part: 256 };
  const taken = (plan) => {
    const rounds = roundsOf({ texts: TEXTS, draft: DRAFT, prompt: PROMPT, ...plan });
    const times = rounds.map((round) => roofline(machine, 2 * MODEL, MODEL, total(round)));
    return { rounds, wait: Math.max(...times), read: times.reduce((sum, one) => sum + one, 0) };
  };
  const slider = (name, label, low, high) =>
    lessonSlider({ label, low, high, step: 1, value: Math.log2(now[name]), told: (power) => String(2 ** power),
      onInput: (power) => { now[name] = 2 ** power; draw(); changed(); } });
  const parts = { rows: slider("rows", "τ, rows of a round", 6, 15),
    part: slider("part", "of them for the prompt", 4, 14) };
  const bars = el("div", { class: "ln-picture" }), curve = el("div", { class: "ln-picture" });
  const said = el("p", { class: "ln-verdict", role: "status" });
  const element = el("div", { class: "ln-rounds" }, ...Object.values(parts).map((one) => one.element), bars, said,
    curve, el("p", { class: "ln-quiet", text: `${TEXTS} texts are written with ${DRAFT} drafted tokens each, while a ` +
      `prompt of ${PROMPT.toLocaleString("en")} tokens is read. A model of eight billion weights, two bytes each, on ` +
      `${machine.name}, from peak figures, which no program reaches, and without the time for keys and values.` }));

  function drawn(rounds) {
    const wide = chartWidth() - LEFT, most = Math.max(...rounds.map(total));
    const rows = rounds.slice(0, SHOWN).map((round, i) => {
      let at = LEFT;
      const label = svgEl("text",
        { x: LEFT - 8, y: i * (HIGH + GAP) + 14, "text-anchor": "end", text: `round ${i + 1}` });
      return svgEl("g", {}, label, ...Object.keys(KINDS).filter((kind) => round[kind]).map((kind) => {
        const long = (round[kind] / most) * wide, x = at;
        at += long;
        return svgEl("rect",
          { class: "ln-rows", "data-rows": kind, x, y: i * (HIGH + GAP), width: long, height: HIGH });
      }));
    });
    const first = rounds[0];
    return [svgEl("svg", { class: "ln-chart", viewBox: `0 0 ${chartWidth()} ${rows.length * (HIGH + GAP)}`, role: "img",
      "aria-label": `${rounds.length} rounds. The first has ${first.decode} rows of texts, ${first.verify} of drafts ` +
        `and ${first.prefill} of the prompt.` }, ...rows),
    el("p", { class: "ln-key" }, ...Object.entries(KINDS).map(([kind, words]) => el("span", {},
      svgEl("svg", { width: 14, height: 14, viewBox: "0 0 14 14", "aria-hidden": "true" },
        svgEl("rect", { class: "ln-rows", "data-rows": kind, width: 14, height: 14 })), words)),
    el("span", { text: rounds.length > SHOWN ? `and ${rounds.length - SHOWN} rounds more` : "" }))];
  }

  function draw() {
    for (const [name, one] of Object.entries(parts)) one.set(Math.log2(now[name]));
    const { rounds, wait, read } = taken(now), powers = Array.from({ length: 10 }, (_, i) => 2 ** (i + 6));
    const each = powers.map((rows) => ({ ...taken({ ...now, rows }), rows })), drafts = rounds[0].verify / TEXTS;
    bars.replaceChildren(...drawn(rounds));
    writeText(said, `A text waits ${wait.toFixed(1)} ms at most for its next tokens; the prompt is read after ` +
      `${(read / 1000).toFixed(2)} s in ${rounds.length} rounds. Drafts have ` +
      `${drafts} ${drafts === 1 ? "token" : "tokens"} meanwhile.`);
    curve.replaceChildren(lessonChart({
      x: { low: 64, high: 32768, log: true, ticks: powers.filter((_, i) => i % 3 === 0)
        .map((i) => [i, i < 1024 ? String(i) : `${i / 1024}k`]),
        label: "τ, rows of a round" },
      y: { low: 1, high: 10000, log: true, ticks: [1, 10, 100, 1000, 10000].map((i) => [i, String(i)]),
        label: "milliseconds" },
      lines: [{ name: "longest wait of a text", points: each.map((one) => [one.rows, one.wait]), dots: true },
        { name: "until the prompt is read", points: each.map((one) => [one.rows, one.read]), dots: true }],
      marks: [{ at: [now.rows, wait], words: `τ ${now.rows}`, kind: "own" }],
      told: `Longest wait and reading time over τ. At ${now.rows}: ${wait.toFixed(1)} ms and ` +
        `${(read / 1000).toFixed(2)} s.`,
    }), chartKey(["longest wait of a text", "until the prompt is read"]));
  }
  draw();
  const to = (name) => (value) => `set ${name} to ${value}`;
  return { element, settings: () => ({ ...now }), depends: { wait: ["rows", "part"], drafted: ["rows", "part"] },
    tell: { rows: to("τ"), part: to("the prompt’s rows") },
    readings: () => { const { rounds, wait } = taken(now); return { wait, drafted: rounds[0].verify / TEXTS }; } };
}

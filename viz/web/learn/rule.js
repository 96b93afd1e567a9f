// The instrument of the rule: p and q as bars to drag, coins to toss, and the histogram of the tokens that come out.
import { el, setAttributes, svgEl, writeText } from "../base.js";
import { chartWidth, lessonSlider } from "./chart.js";
import { RULES, tossMany, tossOnce, withShare } from "./law.js";
import { overlapPicture } from "./overlap.js";
import { seededBy } from "./seeded.js";
import { choiceGroup } from "../transport.js";

const LYING = 300;     // coins that stay in sight
const ENOUGH = 5000;   // tosses before a question is held against the histogram
const ALL = ["rule", "p", "q"];
const lawSet = (letter) => (law) => `set ${letter} to ${law.map((share) => share.toFixed(2)).join(", ")}`;
const SURE = 4;   // standard deviations of chi square beyond which chance does not explain a histogram

/**
 * Whether chance explains these counts, had the tokens been drawn from p. After few tosses it explains any.
 * @type {(counts: number[], p: number[]) => any}
 */
export function fitsLaw(counts, p) {
  const times = counts.reduce((a, b) => a + b, 0);
  let square = 0, free = -1;
  counts.forEach((count, x) => {
    const expected = p[x] * times;
    if (expected > 0) { square += (count - expected) ** 2 / expected; free++; } else if (count) square = Infinity;
  });
  return square <= Math.max(1, free) + SURE * Math.sqrt(2 * Math.max(1, free)) + 2;
}

/**
 * spec: {words, p, q, rules}. changed(): the readings have changed. secret(): whether a question waits for a guess; the
 * shares, which would answer it, are not told until then. Returns {element, readings(), uncover()}.
 * @param {any} spec
 * @param {{ changed(): void, secret?(): boolean }} hooks
 */
export function lessonRule(spec, { changed, secret = () => false }) {
  const { words } = spec, laws = { p: spec.p.slice(), q: spec.q.slice() };
  let rule = spec.rules[0], counts = words.map(() => 0), kept = 0, last = null, lying = [];
  const random = seededBy(words);   // goes on after Clear, so that no two tosses repeat
  const times = () => counts.reduce((a, b) => a + b, 0);

  const sliders = { p: [], q: [] };
  const bar = (letter, x) => {
    sliders[letter][x] =
      lessonSlider({ label: `${letter} of ${words[x]}`, low: 0, high: 1, step: 0.01, value: laws[letter][x],
        told: (value) => value.toFixed(2), onInput: (value) => {
          laws[letter] = withShare(laws[letter], x, value);
          clear();
        } });
    setAttributes(sliders[letter][x].element, { "data-letter": letter });
    return sliders[letter][x].element;
  };
  const rows =
    words.map((word, x) => el("li", { class: "ln-law-row" }, el("span", { class: "ln-word", text: word }), bar("p", x),
      bar("q", x)));
  const said = el("p", { class: "ln-toss", role: "status" }), verdict = el("p", { class: "ln-verdict" });
  const areas = el("div"), picture = el("div", { class: "ln-picture" });
  const choice = choiceGroup("Rule", spec.rules.map((key) => [key, RULES[key].title]),
    (key) => { rule = key; clear(); });
  const button = (text, onclick, more) => el("button", { type: "button", class: "ln-button", text, onclick, ...more });
  const element = el("div", { class: "ln-rule" },
    el("ul", { class: "ln-laws", "aria-label": "p and q of each token; drag to change" }, ...rows),
    spec.rules.length > 1 ? el("div", { class: "ln-rules" }, choice.element) : null,
    el("div", { class: "ln-buttons" }, button("Toss once", () => toss(1), { "data-main": "" }),
      button("100 times", () => toss(100)), button("10,000 times", () => toss(10000)), button("Clear", () => clear())),
    said, areas, picture, verdict);

  // The bars of p and q can be dragged; the sliders do the same by keyboard.
  let held = null;
  picture.addEventListener("pointerdown", (event) => {
    const { kind, at, scale } = event.target.dataset;
    if (kind !== "p" && kind !== "q") return;
    held = { letter: kind, at: Number(at), scale: Number(scale) };
    picture.setPointerCapture(event.pointerId);
    event.preventDefault();
  });
  picture.addEventListener("pointermove", (event) => {
    if (!held) return;
    const { top, height } = picture.firstChild.getBoundingClientRect(), y = ((event.clientY - top) / height) * HIGH;
    laws[held.letter] = withShare(laws[held.letter], held.at,
      Math.round(100 * ((FLOOR - y) / (FLOOR - TOP)) * held.scale) / 100);
    clear();
  });
  for (const over of ["pointerup", "pointercancel"]) picture.addEventListener(over, () => {
    if (held) { held = null; draw(); }
  });

  function toss(often) {
    if (often === 1) {
      last = tossOnce(rule, laws.p, laws.q, random);
      lying = [...lying, last].slice(-LYING);
      counts[last.token]++;
      kept += Number(last.kept);
    } else {
      last = null;
      const more = tossMany(rule, laws.p, laws.q, often, random);
      lying = [...lying, ...more.last].slice(-LYING);
      counts = counts.map((count, x) => count + more.counts[x]);
      kept += more.kept;
    }
    draw();
    changed();
  }
  function clear() {
    counts = words.map(() => 0); kept = 0; last = null; lying = [];
    draw();
    changed();
  }

  /** The last toss in words. */
  function story() {
    if (!last) return times() ? `${kept.toLocaleString("en")} of ${times().toLocaleString("en")} guesses were kept.`
      : "Nothing tossed yet.";
    const x = last.drafted, name = words[x];
    const first = `The draft guesses ‘${name}’: p ${laws.p[x].toFixed(2)}, q ${laws.q[x].toFixed(2)}, kept with ` +
      `chance ${last.accept.toFixed(2)}.`;
    if (last.kept) return `${first} The coin shows ${last.coin.toFixed(2)}: kept.`;
    return `${first} The coin shows ${last.coin.toFixed(2)}: refused, and ‘${words[last.token]}’ is drawn instead.`;
  }

  function draw() {
    ["p", "q"].forEach((letter) =>
      laws[letter].forEach((share, x) => sliders[letter][x].set(Number(share.toFixed(4)))));
    writeText(said, story());
    const many = times(), fits = fitsLaw(counts, laws.p);
    areas.replaceChildren(overlapPicture(words, laws, lying, rule === "plain redraw", Boolean(last), !secret()));
    picture.replaceChildren(histogram(words, counts, laws, held && held.scale));
    writeText(verdict, many < 100 ? "Toss at least 100 times to compare the histogram with p." : fits
      ? "The histogram follows p: the small differences are chance."
      : "The histogram does not follow p: the difference is too large for chance.");
    setAttributes(verdict, { "data-fits": many < 100 ? null : String(fits) });
  }
  draw();
  return { element, uncover: draw, readings: () => (times() < ENOUGH ? {}
    : { share: counts[0] / times(), kept: kept / times(), fits: Number(fitsLaw(counts, laws.p)) }),
    settings: () => ({ rule, ...laws }), depends: { share: ALL, kept: ALL, fits: ALL },
    tell: { rule: (key) => `choose “${RULES[key].title}”`, p: lawSet("p"), q: lawSet("q") } };
}

const HIGH = 264, FLOOR = 210, TOP = 26;
/** Three bars per token: q, p, and how often the token came. scale: the share at the top, while a bar is dragged. */
function histogram(words, counts, { p, q }, scale) {
  const WIDE = chartWidth(), apart = Math.min(WIDE / 3, 136);   // not below the words, which they are not for
  const many = counts.reduce((a, b) => a + b, 0), room = WIDE / words.length, each = Math.min(44, (room - 24) / 3);
  const highest = scale || Math.max(0.3, ...p, ...q, ...(many ? counts.map((count) => count / many) : []));
  const text = (x, y, content, kind) => svgEl("text", { x, y, "text-anchor": "middle", class: kind, text: content });
  const groups = words.map((word, x) => {
    const middle = (x + 0.5) * room;
    const bars = [["q", q[x]], ["p", p[x]], ["came", many ? counts[x] / many : 0]].map(([kind, share], i) => {
      const tall = (share / highest) * (FLOOR - TOP), left = middle + (i - 1.5) * (each + 3);
      return svgEl("g", {}, svgEl("rect",
        { class: "ln-bar", "data-kind": kind, "data-at": x, "data-scale": highest, x: left, y: FLOOR - tall,
          width: each, height: Math.max(tall, 0.5) }),
        text(left + each / 2, FLOOR - tall - 6, many || kind !== "came" ? share.toFixed(2) : "", "ln-odds"));
    });
    return svgEl("g", {}, ...bars, text(middle, FLOOR + 22, word, "ln-word-label"));
  });
  const came = (x) => (many ? (counts[x] / many).toFixed(2) : "not yet");
  const told = words.map((word, x) => `${word}: q ${q[x].toFixed(2)}, p ${p[x].toFixed(2)}, came ${came(x)}`)
    .join("; ");
  const key = [["q", "q: the draft"], ["p", "p: the target"],
    ["came", many ? `of ${many.toLocaleString("en")} tosses` : "what comes"]];
  const keys =
    key.flatMap(([kind, words2], i) =>
      [svgEl("rect", { class: "ln-bar", "data-kind": kind, x: 4 + i * apart, y: HIGH - 13, width: 12, height: 12 }),
        setAttributes(text(20 + i * apart, HIGH - 3, words2, "ln-odds"), { "text-anchor": "start" })]);
  return svgEl("svg", { class: "ln-chart", viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", "aria-label": told },
    svgEl("path", { class: "ln-axis", d: `M0 ${FLOOR}H${WIDE}` }), ...groups, ...keys);
}

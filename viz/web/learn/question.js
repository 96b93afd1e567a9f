// A question to answer before the run shows the result. The guess is compared with a finished run, the reader's own
// run, or an instrument.
import { el, freshId, setAttributes } from "../base.js";
import { lessonSlider } from "./chart.js";
import { quizNumber } from "./quiz.js";

const CONDITION = /^(\w+) (>=|<=|>|<|==) (-?[\d.]+)$/;
const COMPARE = { ">=": (a, b) => a >= b, "<=": (a, b) => a <= b, ">": (a, b) => a > b, "<": (a, b) => a < b,
  "==": (a, b) => Math.abs(a - b) < 1e-9 };

/** Whether a condition, READING SIGN NUMBER, holds for these readings; null if the reading is not there yet. */
function trueOf(condition, readings) {
  const found = CONDITION.exec(condition);
  if (!found || readings[found[1]] === undefined || readings[found[1]] === null) return null;
  return COMPARE[found[2]](readings[found[1]], Number(found[3]));
}

/**
 * The right answer: a number, the index of a choice, or null if it is not known yet. readings: of its judge.
 * @type {(spec: any, readings: any) => any}
 */
export function rightAnswer(spec, readings) {
  if (!spec.judge) return spec.value;
  if (spec.slider) return readings[spec.answer] ?? null;
  const told = spec.right.map((condition) => trueOf(condition, readings)), at = told.indexOf(true);
  return at < 0 ? null : at;
}

/** Whether a guess is right: a choice must be the answer, a slider's number may miss it by `near`. */
const isRight = (spec, guess, answer) =>
  (spec.slider ? Math.abs(guess - answer) <= spec.near + 1e-9 : guess === answer);

/** The reading by which an instrument judges a question. */
const readingOf = (spec) => (spec.slider ? spec.answer : CONDITION.exec(spec.right[0])[1]);

const ONE = { tokens: "token", guesses: "guess", passes: "pass", rows: "row", steps: "step", times: "time" };
/**
 * A number with its unit, which may begin with a plural: "3 tokens a step", "1 token a step".
 * @type {(value: string, unit: string) => string}
 */
export function withUnit(value, unit) {
  const words = value === "1" ? unit.replace(/^\w+/, (word) => ONE[word] || word) : unit;
  return words ? `${value} ${words}` : value;
}

const WAIT = { run: "Noted. Now run it: your answer is held against your own run.",
  instrument: "Noted. Now try it on the instrument." };
const hundredths = (value) => Math.round(value * 100) / 100;
const number = (value) => (Number.isInteger(value) ? String(value) : value.toFixed(2));

/**
 * hooks: nodes; judge() → the current readings; toSet(reading, with) → the settings to make first, in words;
 * settled(record); earlier: the reader's earlier result. Returns {element, look()}.
 * @param {any} spec
 * @param {any} hooks
 */
export function lessonQuestion(spec, hooks) {
  const group = freshId("choice"), unit = (spec.slider && spec.slider.unit) || "";
  const told = (value) => withUnit(number(value), unit);
  let guess = null, waiting = false;
  const status = el("div", { class: "ln-answer", role: "status" });
  const check = el("button",
    { type: "button", class: "ln-button", "data-main": "", text: "That is my guess", disabled: true,
      onclick: () => { waiting = true; look(); } });
  const choose = (value) => { guess = value; check.disabled = false; };
  const field = spec.slider ? slider(spec.slider) : el("div", { class: "ln-choices" },
      ...spec.choices.map((choice, i) => el("label", { class: "ln-choice" },
        el("input", { type: "radio", name: group, value: i, onchange: () => choose(i) }),
        el("span", {}, ...hooks.nodes(choice)))));
  const element = el("fieldset", { class: "ln-question" }, el("legend", { text: "Predict" }),
    el("p", { class: "ln-ask" }, ...hooks.nodes(spec.ask)), field, el("div", { class: "ln-buttons" }, check), status);
  if (hooks.earlier)
    status.append(el("p", { class: "ln-quiet", text: hooks.earlier.right
      ? "You had this right before. Guess again if you like." : "You guessed at this before. Try again." }));

  /** A slider, and beside it a field for any value: the slider's own first place, one between its steps. */
  function slider({ low, high, step }) {
    const moved = lessonSlider({ label: "Your guess", low, high, step, value: (low + high) / 2, told, unset: "move it",
      onInput(value) { choose(value); typed.value = number(value); } });
    const typed = el("input", { type: "text", inputmode: "decimal", class: "ln-number-field ln-guess",
      autocomplete: "off", maxlength: 12, placeholder: "or type it",
      "aria-label": `Type a number${unit && `, ${unit}`}`,
      onkeydown: (event) => { if (event.key === "Enter") check.click(); },
      oninput() {
        const value = quizNumber(typed.value);
        guess = value;
        check.disabled = value === null;
        if (value !== null) moved.set(value);
      } });
    return el("div", { class: "ln-guessing" }, moved.element, typed);
  }

  /** Compare the guess with the current readings; called again when they have changed. */
  function look() {
    if (!waiting || guess === null) return;
    const set = spec.judge === "instrument" ? hooks.toSet(readingOf(spec), spec.with || {}) : [];
    if (set.length) {
      status.replaceChildren(el("p", { text: `Noted. The question is about another setting: ${set.join(", and ")}.` }));
      hooks.settled(null);
      return;
    }
    const answer = rightAnswer(spec, spec.judge ? hooks.judge(spec.judge) : {});
    if (answer === null) { status.replaceChildren(el("p", { text: WAIT[spec.judge] })); hooks.settled(null); return; }
    waiting = false;
    const right = isRight(spec, guess, answer);
    setAttributes(element, { "data-right": String(right) });
    const near = told(guess) === told(hundredths(answer)) ? "Exactly" : `Close enough, within ${told(spec.near)}`;
    const says = spec.slider
      ? [`${right ? near : "Not so"}: you ` +
        `guessed ${told(guess)}, ${spec.judge ? "it came out at" : "the run says"} ${told(hundredths(answer))}.`]
      : [right ? "Right." : "Not so: ", ...(right ? [] : hooks.nodes(spec.choices[answer])), right ? "" : "."];
    status.replaceChildren(el("p", { class: "ln-result" }, el("strong", {}, ...says.filter((one) => one !== ""))),
      el("p", {}, ...hooks.nodes(spec.then)));
    hooks.settled({ right });
  }
  return { element, look };
}

// The closing quiz: twelve questions whose numbers come from a seed, so that a class shares them. The printed quiz can
// be handed in. The public mountQuiz.
/** @import { LessonHost } from "../view-types.d.ts" */
import { clamp, el, followTheme, followWidth, freshId, setAttributes, writeText } from "../base.js";
import { speedup } from "./law.js";
import { seeded, shuffled } from "./seeded.js";

const DIGITS = 100;

/** The formulas of the questions, by name. Each takes the numbers that the seed has drawn. */
const QUIZ_ANSWERS = {
  speedup: ({ alpha, c, k }) => speedup(alpha, c, k),
  keeping: ({ p, q }) => Math.min(1, p / q),
  plain: ({ gigabytes, bandwidth }) => (1000 * gigabytes) / bandwidth,
};

/** The numbers of a question, drawn with the seed's random numbers. numbers: {name: [low, high, step]}. */
function quizNumbers(numbers, random) {
  const drawn = {};
  for (const [name, [low, high, step]] of Object.entries(numbers || {})) {
    const count = Math.round((high - low) / step) + 1;
    drawn[name] = Math.round((low + Math.floor(random() * count) * step) * 1e6) / 1e6;
  }
  return drawn;
}

/** A question's words, with {name} replaced by its numbers. */
const quizWords = (words, numbers) => words.replace(/\{(\w+)\}/g,
  (whole, name) => (name in numbers ? String(numbers[name]) : whole));

/**
 * The quiz of this seed: questions with their numbers, choices in the seed's order, and answers.
 * @param {any[]} questions
 * @param {number} seed
 */
export function quizOf(questions, seed) {
  const random = seeded(seed);
  return questions.map((spec) => {
    const numbers = quizNumbers(spec.numbers, random), words = quizWords(spec.ask, numbers);
    if (spec.compute) return { words, why: spec.why, near: spec.near, unit: spec.unit || "",
      answer: QUIZ_ANSWERS[spec.compute](numbers) };
    const order = shuffled(spec.choices.map((_, i) => i), random);
    return { words, why: spec.why, choices: order.map((i) => spec.choices[i]), answer: order.indexOf(spec.value) };
  });
}

/**
 * Whether an answer is right; a number may miss by `near`.
 * @type {(question: any, given: number | null) => boolean}
 */
export const quizRight = (question, given) => given !== null
  && (question.choices ? given === question.answer : Math.abs(given - question.answer) <= question.near + 1e-9);

/**
 * The number that was written, null if there is none: 0.33, 0,33, 1/3, 33 %, and a unit behind it.
 * @type {(words: string) => number | null}
 */
export function quizNumber(words) {
  const found = /^([-+]?[\d.,]+)(?:\/([\d.,]+))?(%?)[a-z]*$/i.exec(words.replace(/\s/g, ""));
  if (!found) return null;
  const part = (digits) => Number(digits.replace(",", "."));
  const value = part(found[1]) / (found[2] ? part(found[2]) : 1) / (found[3] ? 100 : 1);
  return Number.isFinite(value) ? value : null;
}

/**
 * data: {title, lead, questions}. host: as for mountLesson; seed: the class's number.
 * @param {Element} element
 * @param {any} data
 * @param {LessonHost} host
 * @param {number} seed
 */
export function mountQuiz(element, data, host, seed) {
  const root = el("section", { class: "ds ln ln-quiz", "aria-labelledby": "ln-title" });
  element.replaceChildren(root);
  const stop = [followTheme(root), followWidth(root)];
  const list = el("ol", { class: "ln-quiz-list" }), score = el("p", { class: "ln-score", role: "status" });
  const number = el("input",
    { type: "number", id: "ln-seed", min: 1, max: 9999, step: 1, value: seed, onchange: () => make(number.value) });
  const name = el("input", { type: "text", id: "ln-name", autocomplete: "off", maxlength: 80 });
  const again = el("button",
    { type: "button", class: "ln-button ln-noprint", hidden: true,
      title: "You answered questions of this class before.", onclick: () => make(host.recall().seed) });
  const button = (text, onclick, main) => el("button",
    { type: "button", class: "ln-button", "data-main": main, text, onclick });
  root.append(el("header", { class: "ln-head" }, el("p", { class: "ln-kicker", text: "Closing quiz" }),
    el(host.top ? "h1" : "h2", { id: "ln-title", class: "ln-title", text: data.title }),
    el("div", { class: "ln-tools" }, ...(host.tools || []))),
    el("p", { class: "ln-question-line", text: data.lead }),
    el("div", { class: "ln-quiz-head" }, el("label", { for: "ln-name", text: "Name" }), name,
      el("label", { for: "ln-seed", text: "Class number" }), number, again),
    list, el("div", { class: "ln-buttons ln-noprint" }, button("Check my answers", () => check(), true),
      button("Print it", () => globalThis.print())), score);
  let quiz = [], fields = [];
  list.addEventListener("change", () => keep());

  function make(wanted) {
    const next = clamp(Math.round(Number(wanted)) || 1, 1, 9999);
    number.value = next;
    host.seeded(next);
    quiz = quizOf(data.questions, next);
    fields = quiz.map((one, i) => field(one, i));
    list.replaceChildren(...fields.map((one) => one.element));
    const { seed: before, answers } = host.recall ? host.recall() : {};
    const kept = Array.isArray(answers) && answers.some((one) => one !== null && one !== "");
    if (kept && before === next) answers.forEach((one, i) => { if (fields[i] && one !== null) fields[i].put(one); });
    again.hidden = !kept || before === next;
    if (!again.hidden) writeText(again, `Go on with class ${before}`);
    writeText(score, "");
  }

  function field(one, i) {
    const id = freshId("quiz"), said = el("p", { class: "ln-answer" });
    if (one.choices) {
      const radios = one.choices.map((choice, j) => el("input", { type: "radio", name: id, value: j }));
      const chosenAt = () => { const at = radios.findIndex(({ checked }) => checked); return at < 0 ? null : at; };
      const chosen = el("li", {},
        el("fieldset", {}, el("legend", { text: one.words }),
          ...one.choices.map((choice, j) => el("label", { class: "ln-choice" }, radios[j],
            el("span", { text: choice })))), said);
      return { element: chosen, said, given: chosenAt, raw: chosenAt, put: (at) => {
        if (radios[at]) radios[at].checked = true;
      } };
    }
    const input = el("input",
      { type: "text", inputmode: "decimal", id, class: "ln-number-field", autocomplete: "off" });
    const written = el("li", { "data-question": i }, el("label", { for: id, text: one.words }),
      el("p", {}, input, el("span", { class: "ln-quiet", text: ` ${one.unit ? `${one.unit}, ` : ""}to two decimals` })),
      said);
    return { element: written, said, given: () => quizNumber(input.value), raw: () => input.value,
      put: (words) => { input.value = words; } };
  }

  function check() {
    const marks = fields.map(({ element: item, said, given }, i) => {
      const own = given(), right = quizRight(quiz[i], own);
      const answer = quiz[i].choices ? quiz[i].choices[quiz[i].answer]
        : `${Math.round(quiz[i].answer * DIGITS) / DIGITS} ${quiz[i].unit}`.trim();
      setAttributes(item, { "data-right": own === null ? null : String(right) });
      writeText(said, own === null ? "Not answered yet." : right ? `Right. ${quiz[i].why}`
        : `Not so: ${answer}. ${quiz[i].why}`);
      return right;
    });
    const right = marks.filter(Boolean).length;
    writeText(score, `${right} of ${marks.length} right, with the numbers of class ${number.value}.`);
    keep(right);
  }

  /** The answers as they were written, which the browser keeps for this class number. */
  function keep(right = null) {
    host.remember({ score: right, seed: Number(number.value), answers: fields.map(({ raw }) => raw()) });
  }
  make(seed);
  return { destroy() { stop.forEach((one) => one()); root.remove(); }, get quiz() { return quiz; } };
}

// Controls made from the declared options of a drafter or a rule. Options that currently do nothing are not shown.
/** @import { Option } from "./types.d.ts" */
import { clamp, el, freshId } from "../../viz/web/base.js";

const nameOf = (option) => option.label || option.name.replaceAll("_", " ");

/**
 * The message about a number that was out of range.
 * @type {(asked: number, low: number | string, high: number | string, set: number) => string}
 */
export const boundWords = (asked, low, high, set) => `${asked} is out of range (${low} to ${high}): set to ${set}.`;

function control(option, value, changed, mark) {
  const id = freshId("option");
  const help = el("span", { class: "pg-help", id: id + "-help", text: option.help });
  const common = { id, "aria-describedby": id + "-help", [mark]: option.name };
  let field;
  if (option.type === "bool") {
    field = el("input", { ...common, type: "checkbox", checked: Boolean(value),
      onchange: () => changed(option.name, field.checked) });
  } else if (option.type === "choice") {
    field = el("select", { ...common, onchange: () => changed(option.name, field.value) },
      ...option.choices.map((choice) => el("option",
        { value: choice, text: (option.said || {})[choice] || choice, selected: choice === value })));
  } else {
    field = number(option, value, common, changed);
  }
  const bound = el("span", { class: "pg-help pg-bound", role: "status" });
  field.addEventListener("input", () => { bound.textContent = ""; });
  if (field.type === "number") field.addEventListener("pg-bounded", (event) => { bound.textContent = event.detail; });
  return el("div", { class: "pg-option" }, el("label", { for: id, text: nameOf(option) }), field, help, bound);
}

function number(option, value, common, changed) {
  const whole = option.type === "int";
  const bounded = option.minimum !== null && option.maximum !== null;
  // 0 is what pays here: no number of the visitor's
  const written = (amount) => (option.auto && !amount ? "" : amount);
  const field = el("input",
    { ...common, type: "number", value: written(value), min: option.minimum, max: option.maximum,
      step: whole ? 1 : "any", inputmode: whole ? "numeric" : "decimal", placeholder: option.auto ? "auto" : null });
  field.addEventListener("change", () => {
    let next = Number(field.value);
    if (field.value === "" || !Number.isFinite(next)) next = option.default;
    if (whole) next = Math.round(next);
    const asked = next;
    if (bounded) next = clamp(next, option.minimum, option.maximum);
    field.value = written(next);
    if (next !== asked)
      field.dispatchEvent(new CustomEvent("pg-bounded",
        { detail: boundWords(asked, option.minimum, option.maximum, next) }));
    changed(option.name, next);
  });
  return field;
}

/** What makes an option idle: "cold" or "hot" for the temperature, "other" for another option, or null. */
function stopped(option, declared, values, temperature) {
  if (option.only === "sampled" && !temperature) return "cold";
  if (option.only === "greedy" && temperature) return "hot";
  if (!option.depends_on) return null;
  const [name, wanted] = option.depends_on, other = declared.find((one) => one.name === name);
  if (values[name] !== wanted) return "other";
  return other ? stopped(other, declared.filter((one) => one !== option), values, temperature) : null;
}

/**
 * A control for each of the declared options, with the advanced ones folded. values: {name: value}; made to hold
 * exactly these options and kept up to date; `changed` is called after each change. mark: the attribute that names a
 * control's option. Returns {elements, settle(temperature)}: settle shows the options that have an effect at that
 * temperature and names the others.
 * @param {Option[]} declared
 * @param {Record<string, any>} values
 * @param {() => void} changed
 * @param {string} mark
 */
export function optionControls(declared, values, changed, mark) {
  let temperature = 0;
  const set = (name, value) => { values[name] = value; draw(); changed(); };
  for (const name of Object.keys(values)) if (!declared.some((option) => option.name === name)) delete values[name];
  for (const option of declared) if (values[option.name] === undefined) values[option.name] = option.default;
  const controls = new Map(declared.map((option) => [option, control(option, values[option.name], set, mark)]));
  const of = (advanced) => declared.filter((option) => Boolean(option.advanced) === advanced)
    .map((option) => controls.get(option));
  const folded = of(true), idle = el("p", { class: "pg-help pg-idle" }), summary = el("summary", {});
  const fold = el("details", { class: "pg-fold" }, summary, ...folded);
  fold.open = declared.some((option) => option.advanced && values[option.name] !== option.default);

  function draw() {
    const why = new Map(declared.map((option) => [option, stopped(option, declared, values, temperature)]));
    for (const [option, element] of controls) element.hidden = why.get(option) !== null;
    const names = (reason) => declared.filter((option) => why.get(option) === reason)
      .map((option) => `“${nameOf(option)}”`);
    const told = (found, where) => (found.length === 1
      ? `The option ${found[0]} works only ${where}, so it is not shown now.`
      : `The options ${found.join(", ")} work only ${where}, so they are not shown now.`);
    idle.textContent = [["hot", "at temperature 0"], ["cold", "above temperature 0"]]
      .map(([reason, where]) => [names(reason), where]).filter(([found]) => found.length)
      .map(([found, where]) => told(found, where)).join(" ");
    const shown = folded.filter((element) => !element.hidden).length;
    fold.hidden = !shown;
    summary.textContent = `Advanced (${shown})`;
  }
  draw();
  return { elements: [...of(false), ...(folded.length ? [fold] : []), idle], settle(now)
    { temperature = now; draw(); } };
}

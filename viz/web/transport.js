// Buttons that move through the steps: back, play, forward, pace.
/** @import { Model, Player } from "./view-types.d.ts" */
import { el, setAttributes, svgEl, writeText } from "./base.js";
import { PACES } from "./player.js";
import { plural } from "./words.js";

const ICONS = {
  first: "M4 3v10M13 3L6.5 8L13 13Z", previous: "M12 3L5 8L12 13Z", play: "M4.5 2.5L13 8L4.5 13.5Z",
  pause: "M4 3h3v10h-3zM9 3h3v10h-3z", next: "M4 3L11 8L4 13Z", last: "M3 3L9.5 8L3 13ZM12 3v10",
  plus: "M8 3v10M3 8h10", minus: "M3 8h10", fit: "M3 6V3h3M10 3h3v3M13 10v3h-3M6 13H3v-3",
};

/** @type {(name: string) => Element} */
export const icon = (name) => svgEl("svg",
  { class: "ds-glyph", viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": "true" },
  svgEl("path", { d: ICONS[name] }));
/** @type {(name: string, label: string, onclick: () => void) => HTMLElement} */
export const iconButton = (name, label, onclick) =>
  el("button", { type: "button", class: "ds-button", "aria-label": label, title: label, onclick }, icon(name));

/**
 * A small group of buttons, one of which is pressed. choices: [[value, label]].
 * @param {string} label
 * @param {[string, string][]} choices
 * @param {(value: string) => void} onPick
 */
export function choiceGroup(label, choices, onPick) {
  const buttons =
    choices.map(([value, text]) => el("button",
      { type: "button", class: "ds-choice", "data-value": value, "aria-pressed": "false", text,
        onclick: () => { set(value); onPick(value); } }));
  function set(value) {
    buttons.forEach((b) => b.setAttribute("aria-pressed", String(b.getAttribute("data-value") === value)));
  }
  set(choices[0][0]);
  return { element: el("div", { class: "ds-choices", role: "group", "aria-label": label }, ...buttons), set };
}

const enlarged = new Set();   // one setter per view on the page
let hall = false;

/**
 * Large type for a lecture hall, in every view of the page at once.
 * @param {HTMLElement} root
 */
export function largeButton(root) {
  const button = el("button",
    { type: "button", class: "ds-button ds-large", "aria-pressed": "false", text: "Large type",
      title: "For a lecture hall: large type, the picture over the whole width, the controls below it.",
      onclick: () => { hall = !root.hasAttribute("data-large"); for (const each of enlarged) each(hall); } });
  function set(on) {
    // the page around the view has styles of its own for large type
    for (const one of [root, root.closest(".gradio-container")]) if (one)
      setAttributes(one, { "data-large": Boolean(on) });
    button.setAttribute("aria-pressed", String(Boolean(on)));
  }
  enlarged.add(set);
  if (hall) set(true);
  return { element: button, set, forget: () => enlarged.delete(set) };
}

/** @type {(player: Player, model: Model) => { element: HTMLElement, draw(): void }} */
export function makeTransport(player, model) {
  const play = iconButton("play", "Play", () => player.toggle());
  play.classList.add("ds-play");
  const pace = el("select", { class: "ds-pace", "aria-label": "Pace", onchange: () => player.setPace(pace.value) },
    ...Object.entries(PACES).map(([value, { label }]) => el("option", { value, text: label })));
  const where = el("span", { class: "ds-where" }), passes = el("span", { class: "ds-passes" });
  const element = el("div", { class: "ds-transport", role: "group", "aria-label": "Replay" },
    iconButton("first", "First step", () => player.seek(0)),
    iconButton("previous", "Previous step", () => player.move(-1)), play,
    iconButton("next", "Next step", () => player.move(1)),
    iconButton("last", "Last step", () => player.seek(player.last)), pace, where, passes);
  let playing = null;
  return {
    element,
    draw() {
      if (playing !== player.playing) {
        playing = player.playing;
        setAttributes(play, { "aria-label": playing ? "Pause replay" : "Play", title: playing ? "Pause replay"
          : "Play" });
        play.replaceChildren(icon(playing ? "pause" : "play"));
      }
      if (pace.value !== player.pace) pace.value = player.pace;
      const step = model.steps[player.step];
      writeText(where, step ? `Step ${player.step + 1} of ${model.steps.length}` : "");
      writeText(passes, step ? `· ${plural(step.view.passes, "pass", "passes")} of the target` : "");
    },
  };
}

/**
 * Arrow keys and space, unless the focused element uses them.
 * @type {(root: HTMLElement, player: Pick<Player, "move" | "toggle">) => () => void}
 */
export function followKeys(root, player) {
  const busy =
    "input, textarea, select, [contenteditable], [role=tab], [role=radio], [role=combobox], " +
    "[role=slider]:not(.ds-timeline)";
  function onKey(event) {
    if (event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey) return;
    const inside = root.contains(event.target);
    const nowhere = event.target === document.body || event.target === document.documentElement;
    if (!inside && !nowhere) return;
    if (!root.getClientRects().length || event.target.closest(busy)) return;
    if (event.key === "ArrowRight") player.move(1);
    else if (event.key === "ArrowLeft") player.move(-1);
    else if (event.key === " " && !event.target.closest("button, a")) player.toggle();
    else return;
    event.preventDefault();
  }
  document.addEventListener("keydown", onKey);
  return () => document.removeEventListener("keydown", onKey);
}

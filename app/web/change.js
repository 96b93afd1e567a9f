// "Change it": the button that opens the panel with everything a run, or a race, is made of besides its prompt.
import { el, find, setAttributes, stillWanted, whenThere } from "../../viz/web/base.js";

const POPUPS = "[aria-expanded='true'][role=combobox], .ds-tip:not([hidden]), .pg-tour-layer:not([hidden])";
const phone = () => matchMedia("(max-width: 640px)").matches;

/**
 * prefix: what the ids of the button and its panel begin with. picture: the selector of what a phone shows above the
 * panel, which covers the lower half.
 * @type {(element: Element, prefix?: string, picture?: string) => void}
 */
export function change(element, prefix = "", picture = "#watch-view .ds-tree-card") {
  const place = `${prefix}change-panel`;
  const button = el("button",
    { type: "button", id: `${prefix}change`, class: "pg-tool", text: "Change it", "aria-expanded": "false",
      "aria-controls": place, title: "Methods, what they write, temperature, length, models",
      onclick: () => open(button.getAttribute("aria-expanded") !== "true") });
  const shut = el("button",
    { type: "button", class: "pg-tool", text: "×", "aria-label": "Close",
      onclick() { open(false); button.focus(); } });
  element.append(button);
  whenThere(`#${place}`, (panel) => {
    setAttributes(panel, { role: "region", "aria-label": "Change it" });
    panel.prepend(el("div", { class: "pg-change-head" }, el("h2", { text: "Change it" }), shut));
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.defaultPrevented || document.querySelector(POPUPS)) return;
    if (button.clientWidth && button.getAttribute("aria-expanded") === "true") { open(false); button.focus(); }
  }, true);

  function open(wanted) {
    setAttributes(button, { "aria-expanded": String(wanted) });
    setAttributes(find(`#${place}`), { "data-open": wanted });
    if (wanted && phone()) find(picture).scrollIntoView({ block: "start",
      behavior: stillWanted() ? "auto" : "smooth" });
  }
}

/**
 * Open the panel of Watch, if it is not open yet.
 * @type {() => void}
 */
export function openChange() {
  const button = find("#change");
  if (button && button.getAttribute("aria-expanded") !== "true") button.click();
}

// "Change it": the button that opens the panel with everything a run is made of besides its prompt.
import { el, find, setAttributes, stillWanted, whenThere } from "../../viz/web/base.js";

const PANEL = "change-panel";
const POPUPS = "[aria-expanded='true'][role=combobox], .ds-tip:not([hidden]), .pg-tour-layer:not([hidden])";
const phone = () => matchMedia("(max-width: 640px)").matches;

/** @type {(element: Element) => void} */
export function change(element) {
  const button = el("button",
    { type: "button", id: "change", class: "pg-tool", text: "Change it", "aria-expanded": "false",
      "aria-controls": PANEL, title: "Method, what it writes, temperature, length, your own models",
      onclick: () => open(button.getAttribute("aria-expanded") !== "true") });
  const shut = el("button",
    { type: "button", class: "pg-tool", text: "×", "aria-label": "Close", onclick() { open(false); button.focus(); } });
  element.append(button);
  whenThere(`#${PANEL}`, (panel) => {
    setAttributes(panel, { role: "region", "aria-label": "Change it" });
    panel.prepend(el("div", { class: "pg-change-head" }, el("h2", { text: "Change it" }), shut));
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.defaultPrevented || document.querySelector(POPUPS)) return;
    if (button.getAttribute("aria-expanded") === "true") { open(false); button.focus(); }
  }, true);

  /** On a phone the panel covers the lower half; the picture comes to stand above it. */
  function open(wanted) {
    setAttributes(button, { "aria-expanded": String(wanted) });
    setAttributes(find(`#${PANEL}`), { "data-open": wanted });
    if (wanted && phone()) find("#watch-view .ds-tree-card")
      .scrollIntoView({ block: "start", behavior: stillWanted() ? "auto" : "smooth" });
  }
}

/**
 * Open the panel, if it is not open yet.
 * @type {() => void}
 */
export function openChange() {
  const button = find("#change");
  if (button && button.getAttribute("aria-expanded") !== "true") button.click();
}

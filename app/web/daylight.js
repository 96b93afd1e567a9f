// The switch between light and dark. Gradio, and the place without a server, mark a dark page on its body.
import { el } from "../../viz/web/base.js";

/** @type {() => HTMLButtonElement} */
export function daylight() {
  const dark = () => document.body.classList.contains("dark");
  const button = el("button", { type: "button", class: "pg-tool", id: "dark", text: "◐", title: "Light or dark",
    "aria-label": "Dark",
    onclick: () => document.body.classList.toggle("dark") });
  const show = () => button.setAttribute("aria-pressed", String(dark()));
  new MutationObserver(show).observe(document.body, { attributes: true, attributeFilter: ["class"] });
  show();
  return button;
}

// The prompt's box, which shows one line until it has the focus.
/** @import { Tab } from "./types.d.ts" */
import { targetOf } from "../../viz/web/base.js";

/**
 * Say beside the box's one line how many lines its prompt has.
 * @type {(name: Tab, prompt: unknown) => void}
 */
export function countLines(name, prompt) {
  const lines = String(prompt || "").trimEnd().split("\n").length;
  document.documentElement.style.setProperty(`--${name}-lines`, lines > 1 ? `"line 1 of ${lines}"` : "none");
}

/** Let a triple click, which selects a line elsewhere, select the whole prompt: the lines below are not seen. */
export function hearPrompts() {
  document.addEventListener("click", (event) => {
    const box = /** @type {HTMLTextAreaElement | null} */ (targetOf(event)?.closest(".pg-prompt textarea"));
    if (box && event.detail === 3) box.select();
  });
}

// The prompt's box, which shows one line until it has the focus.
import { targetOf } from "../../viz/web/base.js";

/** Let a triple click, which selects a line elsewhere, select the whole prompt: the lines below are not seen. */
export function hearPrompts() {
  document.addEventListener("click", (event) => {
    const box = /** @type {HTMLTextAreaElement | null} */ (targetOf(event)?.closest(".pg-prompt textarea"));
    if (box && event.detail === 3) box.select();
  });
}

// Words with an explanation on hover and on focus; Escape closes it until the pointer or the focus has left.
import { el, freshId } from "../../viz/web/base.js";

/**
 * parts: strings and [word, explanation] pairs, in reading order.
 * @type {(element: Element, parts: (string | [string, string])[]) => void}
 */
export function terms(element, parts) {
  const line = el("p", { class: "pg-lead" });
  for (const part of parts) {
    if (typeof part === "string") { line.append(part); continue; }
    const id = freshId("term");
    const tip = el("span", { class: "pg-tip", role: "tooltip", id, text: part[1] });
    const word = el("button", { type: "button", class: "pg-term", "aria-describedby": id, text: part[0] });
    const holder = el("span", { class: "pg-term-holder" }, word, tip);
    const place = () => {
      tip.style.setProperty("--pg-shift", "0px");
      const box = tip.getBoundingClientRect();
      const wide = document.documentElement.clientWidth;
      const shift = Math.min(0, wide - 12 - box.right) + Math.max(0, 12 - box.left);
      tip.style.setProperty("--pg-shift", `${shift}px`);
    };
    const speakAgain = () => holder.classList.remove("pg-quiet");
    holder.addEventListener("pointerenter", place);
    word.addEventListener("focus", place);
    holder.addEventListener("pointerleave", speakAgain);
    word.addEventListener("blur", speakAgain);
    line.append(holder);
  }
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") for (const holder of line.children) holder.classList.add("pg-quiet");
  });
  element.append(line);
}

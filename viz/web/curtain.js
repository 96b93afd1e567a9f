// What covers a tree that has been scrolled to the left, beside its root, which stays where it was.
import { freshId, svgEl } from "./base.js";

const HIGH = 44, SOFT = 18;                        // px

export function makeCurtain() {
  const id = freshId("curtain"), soft = svgEl("rect", { width: SOFT, height: HIGH, fill: `url(#${id})` });
  const cover = svgEl("rect", { height: HIGH });
  const stop = (offset, opacity) => svgEl("stop", { offset, "stop-opacity": String(opacity) });
  const g = svgEl("g", { class: "ds-curtain", "aria-hidden": "true", hidden: true },
    svgEl("linearGradient", { id }, stop("0", 1), stop("1", 0)), cover, soft);
  return {
    g,
    /** Cover what lies between these two x, and fade out after the second. */
    draw(from, to) {
      cover.setAttribute("transform", `translate(${from} ${-HIGH / 2})`);
      cover.setAttribute("width", String(Math.max(0, to - from)));
      soft.setAttribute("transform", `translate(${to} ${-HIGH / 2})`);
    },
  };
}

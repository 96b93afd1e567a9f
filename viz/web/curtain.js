// What covers a tree that has been scrolled to the left, beside its root, which stays where it was; or one that grows
// downwards, above its root.
import { freshId, setAttributes, svgEl } from "./base.js";

const HIGH = 44, WIDE = 4000, SOFT = 18, DOTS = 22; // px

export function makeCurtain() {
  const id = freshId("curtain"), soft = svgEl("rect", { width: SOFT, fill: `url(#${id})` }), cover = svgEl("rect", {});
  const dots = svgEl("text", { class: "ds-curtain-dots" });
  dots.textContent = "⋯";                          // tokens stand between the root and those that are seen
  const stop = (offset, opacity) => svgEl("stop", { offset, "stop-opacity": String(opacity) });
  const g = svgEl("g", { class: "ds-curtain", "aria-hidden": "true", hidden: true },
    svgEl("linearGradient", { id }, stop("0", 1), stop("1", 0)), cover, soft, dots);
  return {
    g,
    /** Cover what lies between these two x, or y, and fade out behind the dots after the second. */
    draw(from, to, down) {
      const high = down ? WIDE : HIGH, end = to + DOTS;
      g.setAttribute("transform", `rotate(${down ? 90 : 0})`);
      for (const [rect, at] of [[cover, from], [soft, end]])
        setAttributes(rect, { height: high, transform: `translate(${at} ${-high / 2})` });
      setAttributes(dots, { transform: `translate(${to + DOTS / 2} 0)` });
      cover.setAttribute("width", String(Math.max(0, end - from)));
    },
  };
}

// The kept tokens leave the tree and slide into the text.
import { el, stillWanted } from "./base.js";

/**
 * pairs: [[from element, to element, text, status, look]]. The moving copies are decoration, hidden from screen
 * readers. They disappear when they land or when the returned function is called.
 * @type {(root: HTMLElement, pairs: [Element, Element, string, string, string][]) => () => void}
 */
export function fly(root, pairs) {
  if (stillWanted() || !root.animate) return () => {};
  const runs = [];
  const base = root.getBoundingClientRect(), zoom = root.currentCSSZoom || 1;
  pairs.forEach(([from, to, text, status, look], order) => {
    if (!from || !to) return;
    const a = from.getBoundingClientRect(), b = to.getBoundingClientRect();
    if (!a.width || !b.width) return;
    const ghost = el("span",
      { class: "ds-ghost", "data-status": status, "data-look": look, "aria-hidden": "true", text });
    root.append(ghost);
    const move = (rect) => `translate(${(rect.left - base.left) / zoom}px, ${(rect.top - base.top) / zoom}px)`;
    const run = ghost.animate(
      // words never fade
      [{ transform: move(a), visibility: "hidden" }, { transform: move(a), visibility: "visible", offset: 0.15 },
        { transform: move(b), offset: 0.85 }, { transform: move(b), visibility: "visible" }],
      { duration: 620, delay: order * 55, easing: "cubic-bezier(.5,0,.2,1)", fill: "both" });
    run.onfinish = run.oncancel = () => ghost.remove();
    runs.push([run, ghost]);
  });
  // its event would come a frame later
  return () => runs.forEach(([run, ghost]) => { run.cancel(); ghost.remove(); });
}

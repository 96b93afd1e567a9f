// The hand on the tree of a step: which node is chosen or passed over, by pointer and by keys.
/** @import { NodeRef } from "./types.d.ts" */

const NODES = "[data-node],[data-root],[data-final]";

/** The parent of the fold that an element belongs to; undefined for none. */
function foldOf(element) {
  const g = element && element.closest ? element.closest("[data-fold]") : null;
  return g ? Number(g.getAttribute("data-fold")) : undefined;
}

/** The node that an element of the picture belongs to: its index, -1 for the root, "final"; undefined for none. */
function nodeOf(svg, element) {
  const g = element && element.closest ? element.closest(NODES) : null;
  if (!g || !svg.contains(g)) return undefined;
  if (g.hasAttribute("data-node")) return Number(g.getAttribute("data-node"));
  return g.hasAttribute("data-root") ? -1 : "final";
}

/** The node below or above this one on the screen, from column to column; undefined at the end. */
function neighbour(svg, g, down) {
  const places = [...svg.querySelectorAll(NODES)].filter((other) => other.getClientRects().length)
    .map((other) => [other, other.getBoundingClientRect()])
    .sort((a, b) => a[1].left - b[1].left || a[1].top - b[1].top);
  const at = places.findIndex(([other]) => other === g);
  return (places[at + (down ? 1 : -1)] || [])[0];
}

/**
 * hooks: select(node), hover(node or undefined), reach(node): it was chosen by keys and gets the focus, toggle(parent):
 * open or close what is folded below it.
 * @type {(svg: any, hooks: { select(node: NodeRef): void, hover(node?: NodeRef): void, reach(node: NodeRef): void,
 *   toggle(parent: number): void }) => void}
 */
export function hearNodes(svg, hooks) {
  svg.addEventListener("click", (event) => {
    const node = nodeOf(svg, event.target), fold = foldOf(event.target);
    if (fold !== undefined) hooks.toggle(fold);
    if (node !== undefined) hooks.select(node);
  });
  svg.addEventListener("focusin", (event) => {
    const node = nodeOf(svg, event.target);
    if (node !== undefined && event.target.matches(":focus-visible")) hooks.select(node);
  });
  svg.addEventListener("pointerover", (event) => hooks.hover(nodeOf(svg, event.target)));
  svg.addEventListener("pointerleave", () => hooks.hover(undefined));
  svg.addEventListener("keydown", (event) => {
    const fold = foldOf(event.target);
    if (fold !== undefined && (event.key === "Enter" || event.key === " ")) {
      event.preventDefault(); event.stopPropagation();
      hooks.toggle(fold);
    }
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp" && event.key !== "Enter") return;
    const node = nodeOf(svg, event.target);
    if (node === undefined) return;
    event.preventDefault();
    if (event.key === "Enter") { hooks.select(node); return; }
    const next = neighbour(svg, event.target.closest(".ds-node"), event.key === "ArrowDown");
    if (!next) return;
    const to = nodeOf(svg, next);
    hooks.select(to);
    hooks.reach(to);
  });
}

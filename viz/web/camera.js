// Zoom and drag for an SVG. All steps of a run are drawn at the run's scale until the reader zooms or drags. Where a
// drawing is wider than the canvas, the camera shows the end of the walk and as much before it as fits.
import { clamp } from "./base.js";

const LEAST = 0.12;                                // scale of the whole tree, when the reader asks for it
const LEAN = 0.175;                                // share of the free room that stays at the left

/**
 * The scale at which so wide and so high a drawing fits the canvas, within the limits.
 * @type {(wide: number, high: number, canvas: { width: number, height: number },
 *   limits: { least: number, most: number }) => number}
 */
export const scaleOf = (wide, high, { width, height }, { least, most }) =>
  clamp(Math.min(width / wide, height / high), least, most);

/** The place of an edge between these two bounds; the first counts where they contradict one another. */
const between = (at, first, second) => Math.min(first, Math.max(at, second));

/**
 * {x, y}: left and upper edge for a box {k, down, left, right, far, top, bottom, low, high, focus, level} on a canvas.
 * right, low, high: of the run; far, top, bottom: of the step. Where a run is too high for the canvas, each step is
 * placed by itself; a step that does not fit either shows its level, and its focus and as much before it as fits. down:
 * whether the tree grows downwards; its root then stands in the middle, at 0, unless the step needs the room beside it.
 * @type {(box: any, width: number, height: number) => { x: number, y: number }}
 */
export function framing({ k, down, left, right, far, top, bottom, low, high, focus, level }, width, height) {
  if (down) {
    const [least, most] = [-left * k, width - far * k].sort((a, b) => a - b), fits = (far - left) * k <= width;
    return { x: clamp(width / 2 - (fits ? 0 : focus * k), least, most),
      y: between(0.9 * height - level * k, -top * k, height - bottom * k) };
  }
  const spare = width - (right - left) * k, begin = Math.max(0, spare * LEAN) - left * k;
  const [upper, lower] = [-top * k, height - bottom * k].sort((a, b) => a - b);
  const y = (high - low) * k <= height + 1 ? height / 2 - ((low + high) / 2) * k
    : clamp(height / 2 - level * k, upper, lower);
  return { x: between(0.8 * width - focus * k, begin, width - far * k), y };
}

/**
 * The camera moves `stage`, a <g> inside `svg`. above: px at the upper edge that stay free; moved({k, x, y, above}):
 * called after each move.
 * @param {any} svg
 * @param {any} stage
 * @param {{ above?: number, moved?: (at: { k: number, x: number, y: number, above: number }) => void }} settings
 */
export function makeCamera(svg, stage, { above = 0, moved = () => {} }) {
  let k = 1, x = 0, y = 0, held = false, whole = false, box = null, width = 0, height = 0, free = 0;

  function write() {
    stage.setAttribute("transform", `translate(${x.toFixed(2)} ${y.toFixed(2)}) scale(${k.toFixed(4)})`);
    moved({ k, x, y, above });
    fade();
  }
  /** Fade out each edge beyond which the drawing continues, but not the one at which its root stands. */
  function fade() {
    if (!box) return;
    const cut = [box.far * k + x > width + 1 && "right", !box.down && box.top * k + y < above - 1 && "top",
      box.bottom * k + y > above + free + 1 && "bottom"].filter(Boolean).join(" ");
    if (cut) stage.setAttribute("data-cut", cut); else stage.removeAttribute("data-cut");
  }
  function fit() {
    if (!box || !width || !height) return;
    const all = { least: LEAST, most: box.k };
    k = whole ? scaleOf(box.far - box.left, box.bottom - box.top, { width, height: free }, all) : box.k;
    ({ x, y } = framing({ ...box, k }, width, free));
    y += above;
    write();
  }
  function zoom(factor, px, py) {
    const next = clamp(k * factor, LEAST, 4);
    x = px - (px - x) * (next / k);
    y = py - (py - y) * (next / k);
    k = next; held = true;
    write();
  }

  /** Drawing units per px of the screen (not 1 where the page is zoomed by CSS). */
  const ratio = () => width / (svg.getBoundingClientRect().width || width || 1);

  let drag = null;
  svg.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || event.target.closest("[data-status]")) return;
    drag = { px: event.clientX, py: event.clientY, x, y };
    svg.setPointerCapture(event.pointerId);
    svg.classList.add("ds-dragging");
  });
  svg.addEventListener("pointermove", (event) => {
    if (!drag) return;
    x = drag.x + (event.clientX - drag.px) * ratio();
    y = drag.y + (event.clientY - drag.py) * ratio();
    held = true;
    write();
  });
  const end = () => { drag = null; svg.classList.remove("ds-dragging"); };
  svg.addEventListener("pointerup", end);
  svg.addEventListener("pointercancel", end);
  svg.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) {        // the plain wheel scrolls the page
      if (Math.abs(event.deltaX) <= Math.abs(event.deltaY) || !box || box.far * k + x <= width && x >= -box.left * k)
        return;
      event.preventDefault();
      held = true;
      x = clamp(x - event.deltaX * ratio(), width - box.far * k, -box.left * k);
      write();
      return;
    }
    event.preventDefault();
    const at = svg.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY * 0.003), (event.clientX - at.left) * ratio(), (event.clientY - at.top) * ratio());
  }, { passive: false });

  return {
    /** Show this box at its scale, unless the reader has zoomed or dragged. */
    frame(next) { box = next; if (!held) fit(); },
    /** room: px of the height in which the drawing is framed, from `above` on. */
    resize(w, h, room) {
      if (w === width && h === height && room === free) return;
      width = w; height = h; free = room;
      svg.setAttribute("viewBox", `0 0 ${w} ${h}`);
      if (!held) fit();
    },
    zoomBy(factor) { zoom(factor, width / 2, height / 2); },
    /** Fit automatically again. all: the whole drawing, however small. */
    fit(all) { held = false; whole = all; fit(); },
    /** Scroll a point of the drawing into view (when the keyboard moves to a chip). */
    reveal(px, py) {
      const sx = px * k + x, sy = py * k + y, edge = 40;
      if (sx > edge && sx < width - edge && sy > above + 20 && sy < above + free - 20) return;
      x += width / 2 - sx; y += height / 2 - sy;
      write();
    },
  };
}

// Zoom and drag for an SVG. The camera fits the drawing until the reader zooms or drags. Where a drawing is too wide to
// be legible as a whole, the camera shows the end of the walk and as much before it as fits.
import { clamp } from "./base.js";

/**
 * {k, x, y}: scale, left and upper edge for a box {left, right, top, bottom, focus, level} on a canvas. legible: the
 * smallest scale that a wide drawing may cause; a drawing that needs a smaller one shows its focus and as much before
 * the focus as fits. tall: the same for a tall drawing, which shows its level.
 * @type {(box: any, width: number, height: number,
 *   limits: { least: number, legible: number, tall?: number, most: number }) => { k: number, x: number, y: number }}
 */
export function framing(box, width, height, { least, legible, tall = least, most }) {
  const wide = box.right - box.left, high = box.bottom - box.top;
  const k = clamp(Math.min(Math.max(width / wide, legible), Math.max(height / high, tall)), least, most);
  const spare = width - wide * k;
  const x = spare >= -1 ? Math.max(0, spare / 2 * 0.35) - box.left * k
    : clamp(0.8 * width - box.focus * k, width - box.right * k, -box.left * k);
  const y = high * k <= height + 1 ? height / 2 - ((box.top + box.bottom) / 2) * k
    : clamp(height / 2 - box.level * k, height - box.bottom * k, -box.top * k);
  return { k, x, y };
}

/**
 * The camera moves `stage`, a <g> inside `svg`. small: a small canvas, on which a tall tree is not shown as a whole
 * either.
 * @param {any} svg
 * @param {any} stage
 * @param {boolean} [small]
 */
export function makeCamera(svg, stage, small) {
  let k = 1, x = 0, y = 0, held = false, whole = false, box = null, width = 0, height = 0;
  const most = small ? 1.1 : 1.6, least = 0.12, legible = 0.8, tall = small ? 0.62 : least;

  function write() {
    stage.setAttribute("transform", `translate(${x.toFixed(2)} ${y.toFixed(2)}) scale(${k.toFixed(4)})`);
    fade();
  }
  /** Fade out each edge beyond which the drawing continues. */
  function fade() {
    if (!box) return;
    const cut = [box.left * k + x < -1 && "left", box.right * k + x > width + 1 && "right",
      small && box.top * k + y < -1 && "top", small && box.bottom * k + y > height + 1
        && "bottom"].filter(Boolean).join(" ");
    if (cut) stage.setAttribute("data-cut", cut); else stage.removeAttribute("data-cut");
  }
  function fit() {
    if (!box || !width || !height) return;
    ({ k, x, y } = framing(box, width, height,
      { least, most, tall: whole ? least : tall, legible: whole ? least : legible }));
    write();
  }
  function zoom(factor, px, py) {
    const next = clamp(k * factor, least, 4);
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
    if (!event.ctrlKey && !event.metaKey) return;   // the plain wheel scrolls the page
    event.preventDefault();
    const at = svg.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY * 0.003), (event.clientX - at.left) * ratio(), (event.clientY - at.top) * ratio());
  }, { passive: false });

  return {
    /** Show this box, unless the reader has zoomed or dragged. */
    frame(next) { box = next; if (!held) fit(); },
    resize(w, h) {
      if (w === width && h === height) return;
      width = w; height = h;
      svg.setAttribute("viewBox", `0 0 ${w} ${h}`);
      if (!held) fit();
    },
    zoomBy(factor) { zoom(factor, width / 2, height / 2); },
    /** Fit automatically again. all: the whole drawing, however small. */
    fit(all) { held = false; whole = all; fit(); },
    /** Scroll a point of the drawing into view (when the keyboard moves to a chip). */
    reveal(px, py) {
      const sx = px * k + x, sy = py * k + y, edge = 40;
      if (sx > edge && sx < width - edge && sy > 20 && sy < height - 20) return;
      x += width / 2 - sx; y += height / 2 - sy;
      write();
    },
  };
}

// Zoom and drag over an SVG: fits by itself until the reader takes hold of it.
(function (D) {
  "use strict";

  /** box: {left, top, right, bottom} of what must be seen. The camera moves `stage`, a <g> inside `svg`. */
  D.camera = function (svg, stage, onChange) {
    let k = 1, x = 0, y = 0, held = false, box = null, width = 0, height = 0;
    const most = 1.15, least = 0.12;

    function write() {
      stage.setAttribute("transform", `translate(${x.toFixed(2)} ${y.toFixed(2)}) scale(${k.toFixed(4)})`);
      if (onChange) onChange(k, held);
    }
    function fit() {
      if (!box || !width || !height) return;
      const w = box.right - box.left, h = box.bottom - box.top;
      k = D.clamp(Math.min(width / w, height / h), least, most);
      x = Math.max(0, (width - w * k) / 2 * 0.35) - box.left * k;
      y = height / 2 - ((box.top + box.bottom) / 2) * k;
      write();
    }
    function zoom(factor, px, py) {
      const next = D.clamp(k * factor, least, 4);
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
      /** What must be seen; moves only as long as the reader has not. */
      frame(next) { box = next; if (!held) fit(); },
      resize(w, h) {
        if (w === width && h === height) return;
        width = w; height = h;
        svg.setAttribute("viewBox", `0 0 ${w} ${h}`);
        if (!held) fit();
      },
      zoomBy(factor) { zoom(factor, width / 2, height / 2); },
      fit() { held = false; fit(); },
      /** Bring a point of the drawing into sight (used when the keyboard moves to a chip). */
      reveal(px, py) {
        const sx = px * k + x, sy = py * k + y, edge = 40;
        if (sx > edge && sx < width - edge && sy > 20 && sy < height - 20) return;
        if (!held) return;
        x += width / 2 - sx; y += height / 2 - sy;
        write();
      },
    };
  };
})(globalThis.Draftscope);

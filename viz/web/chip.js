// One token as a chip. Its shape shows its status as well, so that the chip can be read without colours.
(function (D) {
  "use strict";
  D.FONT = '13px ui-monospace, "SF Mono", "Cascadia Mono", "DejaVu Sans Mono", "Liberation Mono", Menlo, Consolas, monospace';

  const ICONS = {
    accepted: "M-4 0 L-1.2 3 L4 -3.4",                                   // a tick
    rejected: "M-3.2 -3.2 L3.2 3.2 M3.2 -3.2 L-3.2 3.2",                 // a cross
    recovered: "M3.6 -1.6 A3.8 3.8 0 1 0 3.6 1.8 M3.9 -4.4 L3.8 -1.3 L0.8 -1.8", // a circular arrow
    bonus: "M0 -4.4 V4.4 M-4.4 0 H4.4",                                  // a plus
    ignored: "", drafted: "", plain: "",
    root: "M-2.4 -3.8 L2.6 0 L-2.4 3.8",                                 // an arrowhead
  };

  /** Outline of a chip, centred on (0, 0). look: a status, "drafted" (not judged yet) or "plain" (written where nothing was drafted). */
  D.chipShape = function (look, w, h) {
    const x = w / 2, y = h / 2;
    if (look === "rejected") {
      const c = 6;
      return `M${-x + c} ${-y}H${x - c}L${x} ${-y + c}V${y - c}L${x - c} ${y}H${-x + c}L${-x} ${y - c}V${-y + c}Z`;
    }
    if (look === "recovered") {
      const c = Math.min(9, w / 3);
      return `M${-x + c} ${-y}H${x - c}L${x} 0L${x - c} ${y}H${-x + c}L${-x} 0Z`;
    }
    const r = look === "bonus" ? y : look === "root" ? 3 : 6;
    return `M${-x + r} ${-y}H${x - r}A${r} ${r} 0 0 1 ${x} ${-y + r}V${y - r}A${r} ${r} 0 0 1 ${x - r} ${y}H${-x + r}A${r} ${r} 0 0 1 ${-x} ${y - r}V${-y + r}A${r} ${r} 0 0 1 ${-x + r} ${-y}Z`;
  };

  /**
   * Crowded trees draw ignored tokens small: [type size, height, gap between rows] by crowd. Crowd 3 is for small
   * canvases, on which the text of these tokens would be illegible: type size 0 means a dot.
   */
  D.CROWDS = [[11, 19, 7], [9, 13, 4], [7, 9, 2], [0, 8, 3]];
  /** Extra width at each side for shapes with a point (the hexagon), px. */
  const edgeOf = (look) => (look === "recovered" ? 7 : 0);
  const DOT = { w: 12, h: 8, label: "", small: 0, dot: true };
  /** small: whether the canvas is small. */
  D.crowdOf = (nodes, small) => (nodes <= 28 ? 0 : small ? 3 : nodes <= 72 ? 1 : 2);

  /** {w, h, label, small, dot, patch, side} of a chip with this text, or with a patch of a picture (see D.patchOf), drawn `side` px wide;
   * small: the type size of an ignored chip, else 0. */
  D.chipSize = function (text, status, crowd = 0, patch = null) {
    const [small, h] = D.CROWDS[crowd];
    if (status === "ignored" && !small) return DOT;
    if (patch && status === "ignored") return { w: h + 6, h, label: "", small, patch, side: h - 5 };
    if (patch) return { w: 50 + 2 * edgeOf(status), h: 28, label: "", small: 0, patch, side: 20 };
    const label = D.shorten(D.visible(text), 12);
    if (status === "ignored") {
      return { w: Math.max(2.4 * small, Math.ceil(D.textWidth(label, D.FONT) * small / 13 + 1.3 * small)), h, label, small };
    }
    return { w: Math.max(42, Math.ceil(D.textWidth(label, D.FONT) + 34)) + 2 * edgeOf(status), h: 28, label, small: 0 };
  };

  /** A reusable <g>: draw(size, status, look) gives it another token. look: by default the status. */
  D.chip = function (attributes) {
    const shape = D.svg("path", { class: "ds-shape" });
    const inner = D.svg("path", { class: "ds-inner" });
    const icon = D.svg("path", { class: "ds-icon" });
    const label = D.svg("text", { class: "ds-label", "text-anchor": "middle", dy: "0.35em" });
    const tile = D.svg("g", {});
    const g = D.svg("g", { class: "ds-node", ...attributes }, shape, label);
    let source = null;
    const put = { g: D.keeper(g), shape: D.keeper(shape), inner: D.keeper(inner), icon: D.keeper(icon), label: D.keeper(label), tile: D.keeper(tile) };
    const show = (part, wanted) => { if (!wanted) part.remove(); else if (!part.isConnected) g.append(part); };
    let now = "", size = null, tiled = null;
    return {
      g,
      /** Sets attributes of the whole chip. */
      set: put.g,
      /** The mark of a source at the upper left corner; null: none. */
      mark(index) {
        if (source && (index === null || source.getAttribute("data-source") !== String(index) || size.dot)) { source.remove(); source = null; }
        if (index === null || size.dot) return;
        if (!source) g.append(source = D.sourceMark(index, { "data-source": index }));
        source.setAttribute("transform", `translate(${(-size.w / 2 + 2).toFixed(1)} ${(-size.h / 2 + 1).toFixed(1)})${size.small ? ` scale(${(size.small / 13).toFixed(2)})` : ""}`);
      },
      get halo() { return D.chipShape(now, size.w + 9, size.h + 9); },
      draw(next, status, look = status) {
        if (look !== now) {                          // most chips need neither, and fewer elements draw faster
          show(inner, look === "recovered"); show(icon, ICONS[look]);
          if (ICONS[look]) put.icon("d", ICONS[look]);
        }
        size = next; now = look;
        put.g("data-status", status);
        put.g("data-look", look === status ? null : look);
        put.g("data-dot", size.dot ? "" : null);
        put.shape("d", D.chipShape(look, size.w, size.h));
        if (look === "recovered") put.inner("d", D.chipShape(look, size.w - 7, size.h - 6));
        if (ICONS[look]) put.icon("transform", `translate(${-size.w / 2 + 14 + edgeOf(look)} 0)`);
        show(tile, size.patch);
        if (size.patch) {
          if (String(size.patch.pixels) !== tiled) { tiled = String(size.patch.pixels); D.drawPatch(tile, size.patch); }
          put.tile("transform", `translate(${(ICONS[look] ? 9 : 0) - size.side / 2} ${-size.side / 2}) scale(${(size.side / size.patch.side).toFixed(3)})`);
        }
        show(label, size.label);
        if (!size.label) return;
        put.label("x", ICONS[look] ? "9" : "0");
        put.label("font-size", String(size.small || 13));
        D.write(label, size.label);
      },
    };
  };

  /** A single chip, for the legend. */
  D.legendChip = function (status, text, look = status) {
    const size = D.chipSize(text, status);
    const chip = D.chip({});
    chip.draw(size, status, look);
    return D.svg("svg", { class: "ds-legend-chip", width: size.w + 4, height: size.h + 4, viewBox: `${-size.w / 2 - 2} ${-size.h / 2 - 2} ${size.w + 4} ${size.h + 4}`, "aria-hidden": "true" }, chip.g);
  };
})(globalThis.Draftscope);

// One token as a chip. Its shape shows its status as well, so that the chip can be read without colours.
import { attributeKeeper, svgEl, writeText } from "./base.js";
import { drawPatch } from "./picture.js";
import { sourceMark } from "./sources.js";
import { shorten, textWidth, visible } from "./words.js";

export const FONT =
  '13px ui-monospace, "SF Mono", "Cascadia Mono", "DejaVu Sans Mono", "Liberation Mono", Menlo, Consolas, monospace';

const ICONS = {
  accepted: "M-4 0 L-1.2 3 L4 -3.4",                                   // a tick
  rejected: "M-3.2 -3.2 L3.2 3.2 M3.2 -3.2 L-3.2 3.2",                 // a cross
  recovered: "M3.6 -1.6 A3.8 3.8 0 1 0 3.6 1.8 M3.9 -4.4 L3.8 -1.3 L0.8 -1.8", // a circular arrow
  bonus: "M0 -4.4 V4.4 M-4.4 0 H4.4",                                  // a plus
  ignored: "", drafted: "", plain: "",
  root: "M-2.4 -3.8 L2.6 0 L-2.4 3.8",                                 // an arrowhead
};

/**
 * Outline of a chip, centred on (0, 0). look: a status, "drafted" (not judged yet) or "plain" (written where nothing
 * was drafted).
 */
function chipShape(look, w, h) {
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
  const corner = (toX, toY) => `A${r} ${r} 0 0 1 ${toX} ${toY}`;
  return `M${-x + r} ${-y}H${x - r}${corner(x, -y + r)}V${y - r}${corner(x - r, y)}H${-x + r}${corner(-x, y - r)}` +
    `V${-y + r}${corner(-x + r, -y)}Z`;
}

/** Ignored tokens are drawn small: type size, height, px. */
const SMALL = 12, LOW = 20, LEGEND = 30;
/** Extra width at each side for shapes with a point (the hexagon), px. */
const edgeOf = (look) => (look === "recovered" ? 7 : 0);
/**
 * {w, h, label, small, patch, side} of a chip with this text, or with a patch of a picture (see patchOf), drawn `side`
 * px wide; small: the type size of an ignored chip, else 0.
 * @param {string} text
 * @param {string} status
 * @param {any} [patch]
 */
export function chipSize(text, status, patch = null) {
  if (patch && status === "ignored") return { w: LOW + 6, h: LOW, label: "", small: SMALL, patch, side: LOW - 5 };
  if (patch) return { w: 50 + 2 * edgeOf(status), h: 28, label: "", small: 0, patch, side: 20 };
  const label = shorten(visible(text), 12);
  if (status === "ignored") {
    return { w: Math.max(2.4 * SMALL, Math.ceil(textWidth(label, FONT) * SMALL / 13 + 1.3 * SMALL)), h: LOW, label,
      small: SMALL };
  }
  return { w: Math.max(42, Math.ceil(textWidth(label, FONT) + 34)) + 2 * edgeOf(status), h: 28, label, small: 0 };
}

/**
 * A reusable <g>: draw(size, status, look) gives it another token. look: by default the status.
 * @param {object} attributes
 */
export function makeChip(attributes) {
  const shape = svgEl("path", { class: "ds-shape" });
  const inner = svgEl("path", { class: "ds-inner" });
  const icon = svgEl("path", { class: "ds-icon" });
  const label = svgEl("text", { class: "ds-label", "text-anchor": "middle", dy: "0.35em" });
  const tile = svgEl("g", {}), under = svgEl("text", { class: "ds-chip-note", "text-anchor": "middle" });
  const g = svgEl("g", { class: "ds-node", ...attributes }, shape, label);
  let source = null;
  const put = { g: attributeKeeper(g), shape: attributeKeeper(shape), inner: attributeKeeper(inner),
    icon: attributeKeeper(icon), label: attributeKeeper(label), tile: attributeKeeper(tile),
    under: attributeKeeper(under) };
  const show = (part, wanted) => { if (!wanted) part.remove(); else if (!part.isConnected) g.append(part); };
  let now = "", size = null, tiled = null;
  return {
    g,
    /** Sets attributes of the whole chip. */
    set: put.g,
    /** The mark of a source at the upper left corner; null: none. */
    mark(index) {
      if (source && (index === null || source.getAttribute("data-source") !== String(index))) {
        source.remove();
        source = null;
      }
      if (index === null) return;
      if (!source) g.append(source = sourceMark(index, { "data-source": index }));
      const at = `translate(${(-size.w / 2 + 2).toFixed(1)} ${(-size.h / 2 + 1).toFixed(1)})`;
      source.setAttribute("transform", size.small ? `${at} scale(${(size.small / 13).toFixed(2)})` : at);
    },
    /** Folded away: in the picture, but not seen. */
    hide(status, look) {
      put.g("data-status", status);
      put.g("data-look", look === status ? null : look);
      put.g("display", "none");
    },
    /** A line of words under the chip; "" for none. */
    note(words) {
      show(under, words);
      put.under("y", String(size.h / 2 + 15));
      writeText(under, words);
    },
    get halo() { return chipShape(now, size.w + 9, size.h + 9); },
    draw(next, status, look = status) {
      if (look !== now) {                          // most chips need neither, and fewer elements draw faster
        show(inner, look === "recovered"); show(icon, ICONS[look]);
        if (ICONS[look]) put.icon("d", ICONS[look]);
      }
      size = next; now = look;
      put.g("data-status", status);
      put.g("data-look", look === status ? null : look);
      put.g("display", null);
      put.shape("d", chipShape(look, size.w, size.h));
      if (look === "recovered") put.inner("d", chipShape(look, size.w - 7, size.h - 6));
      if (ICONS[look]) put.icon("transform", `translate(${-size.w / 2 + 14 + edgeOf(look)} 0)`);
      show(tile, size.patch);
      if (size.patch) {
        if (String(size.patch.pixels) !== tiled) { tiled = String(size.patch.pixels); drawPatch(tile, size.patch); }
        const left = (ICONS[look] ? 9 : 0) - size.side / 2, scale = (size.side / size.patch.side).toFixed(3);
        put.tile("transform", `translate(${left} ${-size.side / 2}) scale(${scale})`);
      }
      show(label, size.label);
      if (!size.label) return;
      put.label("x", ICONS[look] ? "9" : "0");
      put.label("font-size", String(size.small || 13));
      writeText(label, size.label);
    },
  };
}

/**
 * A single chip, for the legend.
 * @type {(status: string, text: string, look?: string) => Element}
 */
export function legendChip(status, text, look = status) {
  const size = chipSize(text, status), k = Math.min(1, LEGEND / (size.h + 4));
  const chip = makeChip({});
  chip.draw(size, status, look);
  return svgEl("svg", { class: "ds-legend-chip", width: k * (size.w + 4), height: k * (size.h + 4),
    viewBox: `${-size.w / 2 - 2} ${-size.h / 2 - 2} ${size.w + 4} ${size.h + 4}`, "aria-hidden": "true" }, chip.g);
}

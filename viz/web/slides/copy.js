// A self-contained copy of a drawing, with the styles from style sheets written into it. Only shapes and words are
// copied, never a script, a link or an address.
import { clamp, svgEl } from "../base.js";

const CONTAINERS = new Set(["svg", "g"]);
const DEFINES = new Set(["defs", "clipPath", "pattern", "linearGradient", "radialGradient", "stop"]);
const SHAPES =
  new Set([...CONTAINERS, ...DEFINES, "path", "rect", "circle", "ellipse", "line", "polyline", "polygon", "text",
    "tspan"]);
const GEOMETRY =
  new Set(["d", "x", "y", "x1", "y1", "x2", "y2", "cx", "cy", "r", "rx", "ry", "dx", "dy", "width", "height", "points",
    "transform", "viewBox", "preserveAspectRatio",
    "offset", "clipPathUnits", "patternUnits", "patternContentUnits", "patternTransform", "gradientUnits",
    "gradientTransform"]);
const PAINTS = ["fill", "stroke", "stop-color"];
/** Properties that pass from parent to child, so they are written only where they change. */
const INHERITED = ["fill", "fill-opacity", "stroke", "stroke-opacity", "stroke-width", "stroke-dasharray",
  "stroke-dashoffset", "stroke-linecap", "stroke-linejoin", "stroke-miterlimit", "fill-rule", "clip-rule",
  "font-family", "font-size", "font-style", "font-weight", "letter-spacing", "text-anchor", "dominant-baseline",
  "paint-order", "shape-rendering", "visibility"];
/** Properties that are not inherited, and their values where nothing is set. */
const OWN = { opacity: "1", "clip-path": "none", "text-decoration-line": "none", "stop-color": "#000000",
  "stop-opacity": "1" };
const USUAL = { fill: "#000000", "fill-opacity": "1", stroke: "none", "stroke-opacity": "1" };
const LOCAL = /^url\(["']?[^#"')]*#([\w-]+)["']?\)/;

const hex = (part) => Math.round(clamp(part, 0, 255)).toString(16).padStart(2, "0");
const numbers = (text) => (text.match(/-?[\d.]+(?:e-?\d+)?/g) || []).map(Number);

/** A computed colour as [#rrggbb, url(#id) or none, opacity], because drawing programs do not read rgba(). */
function paintOf(value) {
  const local = LOCAL.exec(value);
  if (local) return [`url(#${local[1]})`, 1];
  if (value.startsWith("rgb")) { const [r, g, b, a = 1] = numbers(value); return [`#${hex(r)}${hex(g)}${hex(b)}`, a]; }
  if (value.startsWith("color(srgb ")) {
    const [r, g, b, a = 1] = numbers(value.slice(11));
    return [`#${hex(255 * r)}${hex(255 * g)}${hex(255 * b)}`, a];
  }
  return ["none", 1];
}

/** The look of an element, by attribute names. */
function lookOf(computed) {
  const look = {};
  for (const name of [...INHERITED, ...Object.keys(OWN)]) look[name] = computed.getPropertyValue(name);
  for (const name of PAINTS) {
    const [colour, seen] = paintOf(look[name]), opacity = `${name.replace("-color", "")}-opacity`;
    look[name] = colour;
    look[opacity] = String(Math.round(seen * Number(look[opacity] || 1) * 1000) / 1000);
  }
  const clip = LOCAL.exec(look["clip-path"]);
  look["clip-path"] = clip ? `url(#${clip[1]})` : "none";
  return look;
}
const painted = (look) => ["fill", "stroke"].some((name) => look[name] !== "none" && look[`${name}-opacity`] !== "0");

function copyOf(from, above, inside, leave) {
  const name = from.localName, computed = getComputedStyle(from), defines = inside || DEFINES.has(name);
  if (!SHAPES.has(name) || leave(from)) return null;
  const look = lookOf(computed), leaf = !CONTAINERS.has(name);
  if (!defines && (computed.display === "none" || look.opacity === "0"
    || (leaf && (look.visibility !== "visible" || !painted(look))))) return null;
  // it is there to be drawn step by step; a copy stands still
  if (from.hasAttribute("pathLength")) look["stroke-dasharray"] = "none";
  const copy = svgEl(name);
  for (const { name: attribute, value } of from.attributes) if (GEOMETRY.has(attribute))
    copy.setAttribute(attribute, value);
  if (DEFINES.has(name) && /^[\w-]+$/.test(from.id)) copy.id = from.id;
  if (!from.hasAttribute("transform") && computed.transform.startsWith("matrix("))
    copy.setAttribute("transform", computed.transform);
  for (const one of INHERITED) if (look[one] !== (above || USUAL)[one]) copy.setAttribute(one, look[one]);
  for (const [one, usual] of Object.entries(OWN))
    if (look[one] !== usual && (name === "stop" || !one.startsWith("stop")))
    copy.setAttribute(one === "text-decoration-line" ? "text-decoration" : one, look[one]);
  for (const child of from.childNodes) {
    if (child.nodeType === Node.TEXT_NODE) {
      if (name === "text" || name === "tspan") copy.append(child.nodeValue);
      continue;
    }
    const inner = child.nodeType === Node.ELEMENT_NODE && copyOf(child, look, defines, leave);
    if (inner) copy.append(inner);
  }
  return copy;
}

/**
 * The copy of an <svg> or of a <g>. leave(element): whether to leave this element out.
 * @type {(from: Element, leave?: (element: Element) => boolean) => any}
 */
export const plainCopy = (from, leave = () => false) => copyOf(from, null, false, leave) || svgEl("g", {});

// oxlint-disable-next-line no-control-regex
const NOT_XML = /[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu;
/**
 * A drawing as XML text; characters that XML cannot hold are left out.
 * @type {(svg: Element) => string}
 */
export const svgFile = (svg) => new XMLSerializer().serializeToString(svg).replace(NOT_XML, "");

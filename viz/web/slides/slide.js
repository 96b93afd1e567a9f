// A slide of the current moment: a picture of the page as a file of its own, SVG or PNG, light or dark, with its key
// and the sentences about it.
/** @import { Picture, SlideOptions } from "../view-types.d.ts" */
import { el, setAttributes, svgEl, writeText } from "../base.js";
import { plainCopy, svgFile } from "./copy.js";
import { picturesIn, slideText } from "./pictures.js";
import { textWidth } from "../words.js";

const GROUND = { light: "#ffffff", dark: "#171c26" }, INK = { light: "#1b2432", dark: "#e9edf4" };
const SANS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Liberation Sans', sans-serif";
// px a side: browsers draw no larger canvas
const LINE = 21, ROW = 38, MOST = 4, EDGE = 14, FINE = 3, LARGEST = 14000;

/** The words wrapped to lines of this width, four at most. */
function wrapped(words, wide, font) {
  const lines = [""];
  for (const word of words.split(/\s+/).filter(Boolean)) {
    const longer = `${lines.at(-1)} ${word}`.trim();
    if (lines.at(-1) && textWidth(longer, font) > wide) lines.push(word); else lines[lines.length - 1] = longer;
  }
  return lines.length > MOST ? [...lines.slice(0, MOST - 1), `${lines[MOST - 1]} …`] : lines.filter(Boolean);
}

/** Draw with the colours of this theme, without motion. root: the element that carries the theme, or null. */
function themed(root, theme, draw) {
  if (!root) return draw(INK[theme]);
  const before = root.getAttribute("data-theme");
  setAttributes(root, { "data-theme": theme, "data-slide": true });
  try { return draw(INK[theme]); } finally { setAttributes(root, { "data-theme": before, "data-slide": null }); }
}

/** A key's shapes and words in rows below the picture. Returns the nodes and their height. */
function keyRows(keys, width, top, ink) {
  let x = EDGE, y = top;
  const nodes = [];
  for (const [svg, words] of keys) {
    const copy = plainCopy(svg), wide = Number(copy.getAttribute("width")), tall = Number(copy.getAttribute("height"));
    const room = wide + (words ? 8 + textWidth(words, "13px system-ui") : 0);
    if (x > EDGE && x + room > width - EDGE) { x = EDGE; y += ROW; }
    nodes.push(setAttributes(copy, { x, y: y + (ROW - tall) / 2 }));
    if (words) nodes.push(slideText(x + wide + 6, y + ROW / 2 + 5, words, 13, ink));
    x += room + 16;
  }
  return { nodes, height: keys.length ? y + ROW - top : 0 };
}

/**
 * A picture of picturesIn as the text of an SVG file. heading: written below it, before the sentences about it.
 * @type {(picture: Picture, theme: "light" | "dark", heading?: string) => string}
 */
export const slideOf = (picture, theme, heading = "") => themed(picture.root, theme, (ink) => {
  const { width, height, parts, keys, told } = picture.draw(ink), key = keyRows(keys, width, height + 6, ink);
  const room = 0.92 * (width - 2 * EDGE);
  const lines = [
    ...wrapped(heading, room, "600 15px system-ui").map((words) => ({ words, weight: 600 })),
    ...told.filter(Boolean).flatMap((words) => wrapped(words, room, "14px system-ui"))
      .map((words) => ({ words, weight: 400 })),
  ];
  const foot = height + key.height + (key.height ? 6 : 0);
  const high = foot + (lines.length ? lines.length * LINE + EDGE : 0);
  const frame = svgEl("svg",
    { xmlns: "http://www.w3.org/2000/svg", width: Math.ceil(width), height: Math.ceil(high),
      viewBox: `0 0 ${Math.ceil(width)} ${Math.ceil(high)}`, "font-family": SANS, role: "img" });
  const name = svgEl("title");
  name.textContent = [heading, ...told].filter(Boolean).join(". ") || picture.name;
  frame.append(name, svgEl("rect", { width: "100%", height: "100%", fill: GROUND[theme] }), ...parts, ...key.nodes,
    ...lines.map(({ words, weight }, i) => slideText(EDGE, foot + (i + 1) * LINE, words, weight > 400 ? 15 : 14, ink,
      { "font-weight": weight })));
  return svgFile(frame);
});

/**
 * Draw an SVG text as a PNG of `scale` times its size: a promise of a blob.
 * @type {(text: string, scale?: number) => Promise<Blob>}
 */
export function pngOf(text, scale = FINE) {
  const image = new Image(), url = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  return new Promise((done, fail) => {
    image.addEventListener("load", () => {
      const finest = Math.min(scale, LARGEST / Math.max(image.width, image.height));
      const canvas = el("canvas",
        { width: Math.round(image.width * finest), height: Math.round(image.height * finest) });
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => (blob ? done(blob) : fail(new Error("no picture"))), "image/png");
    });
    image.addEventListener("error", () => fail(new Error("no picture")));
    image.src = url;
  }).finally(() => URL.revokeObjectURL(url));
}

/** @type {(blob: Blob, name: string) => void} */
export function saveBlob(blob, name) {
  const url = URL.createObjectURL(blob), link = el("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/**
 * The controls that save a picture inside an element: a choice of picture, colours and file type. name(): the
 * beginning of the file's name; heading(): the heading below the picture; looks: classes of {button, select, quiet}.
 * Returns {element, look()}; look() offers the pictures that are there now.
 * @param {Element} within
 * @param {SlideOptions} options
 */
export function slideTools(within, { name, heading, looks }) {
  const said = el("span", { class: looks.quiet, role: "status" });
  const which = el("select", { class: looks.select, "aria-label": "Picture", onfocus: look, onpointerdown: look });
  const theme = el("select", { class: looks.select, "aria-label": "Colours of the picture" },
    el("option", { value: "light", text: "light" }), el("option", { value: "dark", text: "dark" }));
  let offered = "";

  function look() {
    const found = picturesIn(within), names = found.map((one) => `${one.key} ${one.name}`).join("\n");
    const before = which.value;
    if (names !== offered) {
      offered = names;
      which.replaceChildren(...found.map((one) => el("option", { value: one.key, text: one.name })));
      if (found.some(({ key }) => key === before)) which.value = before;
      which.hidden = found.length < 2;
    }
    return found.find(({ key }) => key === which.value);
  }
  const save = (kind) => async () => {
    const picture = look();
    if (!picture) { writeText(said, "There is no picture here yet."); return; }
    try {
      const text = slideOf(picture, theme.value, heading());
      saveBlob(kind === "svg" ? new Blob([text], { type: "image/svg+xml" }) : await pngOf(text),
        `${name()}-${picture.key}-${theme.value}.${kind}`);
      writeText(said, `Saved: ${picture.name}.`);
    } catch {
      writeText(said, kind === "svg" ? "The picture could not be made; try again."
        : "This browser cannot make a PNG of it; take the SVG.");
    }
  };
  const button = (kind) => el("button",
    { type: "button", class: looks.button, text: kind.toUpperCase(),
      "aria-label": `Save this picture as ${kind.toUpperCase()}`, onclick: save(kind) });
  which.hidden = true;
  which.addEventListener("focus", look);
  return { look, element: el("div", { class: "ds-slide", role: "group", "aria-label": "Save a picture" },
    el("span", { class: looks.quiet, text: "Picture:" }), which, theme, button("svg"), button("png"), said) };
}

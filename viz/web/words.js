// How tokens and numbers are written for people: visible white space, split characters mended, probabilities.
/** @import { Probability } from "./types.d.ts" */

const VISIBLE = { " ": "␣", "\n": "⏎", "\r": "␍", "\t": "⇥", "\u00a0": "⍽", "\u2028": "⏎", "\u2029": "⏎", "\v": "␋",
  "\f": "␌" };
// Control characters, direction marks and other invisible characters are written as codes: no token can hide or reverse
// a line.
const HIDDEN =
  // oxlint-disable-next-line no-control-regex
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

// Limits the marks on a letter, or invisible characters in a row: a flood of them would bury the lines around it.
const STACK = /([\p{M}\p{DI}]{4})[\p{M}\p{DI}]+/gu;
const calm = (text) => text.replace(STACK, "$1…");

const SPECIAL = /^<[|｜]([^<>|｜]+)[|｜]>$/;
const ENDS = /^<(?:[|｜](?:endoftext|im_end|eot_id|end▁of▁sentence|end_of_text|eot|end)[|｜]|\/s|eos|end_of_turn)>$/;

/**
 * The piece with visible white space; "∅" if it is empty; a special token by its name; ⟨end⟩ for every end-of-text
 * token.
 * @type {(piece: string) => string}
 */
export function visible(piece) {
  if (ENDS.test(piece)) return "⟨end⟩";
  const text = calm(String(piece)).replace(SPECIAL, "⟨$1⟩")
    .replace(/[ \n\r\t\u00a0\u2028\u2029\v\f]/g, (c) => VISIBLE[c])
    .replace(HIDDEN, (c) => `‹${c.charCodeAt(0).toString(16).padStart(4, "0")}›`);
  return text === "" ? "∅" : text;
}

/**
 * For running text: only characters that could reverse or hide it become codes; spaces and line breaks stay.
 * @type {(piece: string) => string}
 */
export const runningText = (piece) => calm(String(piece)).replace(/[\u2028\u2029]/g, "\n")
  .replace(HIDDEN, (c) => (c === "\n" || c === "\t" ? c : `‹${c.charCodeAt(0).toString(16).padStart(4, "0")}›`));

/**
 * A token within running text: unchanged, except that an end-of-text token is ⟨end⟩, as everywhere else.
 * @type {(piece: string) => string}
 */
export const written = (piece) => (ENDS.test(piece) ? "⟨end⟩" : runningText(piece));

/**
 * A name on one line, its spaces as spaces.
 * @type {(name: string) => string}
 */
export const oneLine = (name) => runningText(name).replace(/\s+/g, " ");

/**
 * Cut to at most `length` characters (whole code points).
 * @type {(text: string, length: number) => string}
 */
export function shorten(text, length) {
  const points = Array.from(text);
  return points.length <= length ? text : points.slice(0, length - 1).join("") + "…";
}

/**
 * ‘dog’, for use in a sentence.
 * @type {(piece: string) => string}
 */
export const quote = (piece) => `‘${shorten(visible(piece), 24)}’`;

const ESCAPE = /(⟨[0-9a-f]{2}⟩)/, UTF_8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const escape = (byte) => `⟨${byte.toString(16).padStart(2, "0")}⟩`;
/** How many bytes the character has that begins with this byte; 0 if none begins with it. */
const bytesOf = (first) => (first < 0xc2 || first > 0xf4 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4);

/**
 * Mends characters that are split between tokens, one token after another. labels: one string per piece so far: the
 * token that completes a character shows it, and the tokens before it no longer show its bytes. Bytes of a character
 * that is not complete yet
 * are held back; bytes that never form a character stay escapes, at the tokens that wrote them.
 */
export function makeMender() {
  const labels = [];
  let held = [];                                    // bytes of an unfinished character: {byte, at}
  function strays() {
    for (const { byte, at } of held) labels[at] += escape(byte);
    held = [];
  }
  function read(byte, at) {
    const first = held.length ? held[0].byte : byte, goes = (byte & 0xc0) === 0x80;
    if (held.length && !goes) strays();
    held.push({ byte, at });
    if (!bytesOf(held[0].byte)) strays();
    else if (goes && held.length === bytesOf(first)) {
      try {
        labels[at] += UTF_8.decode(new Uint8Array(held.map((one) => one.byte)));
        held = [];
      } catch { strays(); }
    }
  }
  return {
    labels,
    /** Take the next piece. Returns the first place whose label is new or another now. */
    push(piece) {
      const at = labels.push("") - 1, from = held.length ? held[0].at : at;
      for (const part of piece.split(ESCAPE)) {
        if (ESCAPE.test(part)) read(parseInt(part.slice(1, 3), 16), at);
        else if (part) { strays(); labels[at] += part; }
      }
      return from;
    },
    /** Nothing follows: bytes that were held back stay escapes. Returns the first place whose label is another now. */
    finish() {
      const from = held.length ? held[0].at : labels.length;
      strays();
      return from;
    },
  };
}

/**
 * The labels of these pieces; see makeMender.
 * @type {(pieces: string[]) => string[]}
 */
export function mend(pieces) {
  const mender = makeMender();
  pieces.forEach((piece) => mender.push(piece));
  mender.finish();
  return mender.labels;
}

/**
 * 0.41, 0.004, 1, "under 0.0001".
 * @type {(value: Probability | undefined) => string}
 */
export function prob(value) {
  if (value === null || value === undefined) return "–";
  if (value === 0 || value === 1) return String(value);
  if (value < 0.0001) return "under 0.0001";
  if (value < 0.01) return value.toFixed(4).replace(/0+$/, "");
  if (value > 0.995) return value > 0.9999 ? "over 0.9999" : value.toFixed(4).replace(/0+$/, "");
  return value.toFixed(2);
}

/**
 * Two probabilities in words, which differ if the numbers do.
 * @type {(a: Probability | undefined, b: Probability | undefined) => string[]}
 */
export const probs = (a, b) => (typeof a === "number" && typeof b === "number" && a !== b && prob(a) === prob(b)
  ? [a, b].map((value) => value.toFixed(4)) : [prob(a), prob(b)]);

/** @type {(value: number) => string} */
export const duration = (value) => (value >= 10000 ? `${(value / 1000).toFixed(1)} s` : value >= 100
  ? `${Math.round(value)} ms` : value >= 10 ? `${value.toFixed(1)} ms` : `${value.toFixed(2)} ms`);
/** @type {(count: number, one: string, many?: string) => string} */
export const plural = (count, one, many) => `${count} ${count === 1 ? one : many || one + "s"}`;

let ruler = null;
const widths = new Map();
/**
 * Width of a text in px in this font; each text is measured once.
 * @type {(text: string, font: string) => number}
 */
export function textWidth(text, font) {
  const key = font + text;
  let width = widths.get(key);
  if (width === undefined) {
    ruler = ruler || document.createElement("canvas").getContext("2d");
    ruler.font = font;
    width = ruler.measureText(text).width;
    if (widths.size > 5000) widths.clear();
    widths.set(key, width);
  }
  return width;
}

// How tokens and numbers are written for people: visible white space, split characters mended, probabilities.
(function (D) {
  "use strict";
  const VISIBLE = { " ": "␣", "\n": "⏎", "\r": "␍", "\t": "⇥", "\u00a0": "⍽", "\u2028": "⏎", "\u2029": "⏎", "\v": "␋", "\f": "␌" };
  // Control characters, direction marks and other invisible characters are written as codes: no token can hide or reverse a line.
  // oxlint-disable-next-line no-control-regex
  const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

  // Limits the marks on a letter, or invisible characters in a row: a flood of them would bury the lines around it.
  const STACK = /([\p{M}\p{DI}]{4})[\p{M}\p{DI}]+/gu;
  const calm = (text) => text.replace(STACK, "$1…");

  const SPECIAL = /^<[|｜]([^<>|｜]+)[|｜]>$/, ENDS = /^<(?:[|｜](?:endoftext|im_end|eot_id|end▁of▁sentence|end_of_text|eot|end)[|｜]|\/s|eos|end_of_turn)>$/;

  /** The piece with visible white space; "∅" if it is empty; a special token by its name; ⟨end⟩ for every end-of-text token. */
  D.visible = function (piece) {
    if (ENDS.test(piece)) return "⟨end⟩";
    const text = calm(String(piece)).replace(SPECIAL, "⟨$1⟩").replace(/[ \n\r\t\u00a0\u2028\u2029\v\f]/g, (c) => VISIBLE[c])
      .replace(HIDDEN, (c) => `‹${c.charCodeAt(0).toString(16).padStart(4, "0")}›`);
    return text === "" ? "∅" : text;
  };

  /** For running text: only characters that could reverse or hide it become codes; spaces and line breaks stay. */
  D.running = (piece) => calm(String(piece)).replace(/[\u2028\u2029]/g, "\n")
    .replace(HIDDEN, (c) => (c === "\n" || c === "\t" ? c : `‹${c.charCodeAt(0).toString(16).padStart(4, "0")}›`));

  /** A token within running text: unchanged, except that an end-of-text token is ⟨end⟩, as everywhere else. */
  D.written = (piece) => (ENDS.test(piece) ? "⟨end⟩" : D.running(piece));

  /** A name on one line, its spaces as spaces. */
  D.title = (name) => D.running(name).replace(/\s+/g, " ");

  /** Cut to at most `length` characters (whole code points). */
  D.shorten = function (text, length) {
    const points = Array.from(text);
    return points.length <= length ? text : points.slice(0, length - 1).join("") + "…";
  };

  /** ‘dog’, for use in a sentence. */
  D.quote = (piece) => `‘${D.shorten(D.visible(piece), 24)}’`;

  const SPLIT = /^((?:⟨[0-9a-f]{2}⟩)*)([\s\S]*?)((?:⟨[0-9a-f]{2}⟩)*)$/;
  const values = (escapes) => (escapes.match(/[0-9a-f]{2}/g) || []).map((h) => parseInt(h, 16));

  /** The longest beginning of these bytes, longer than `least`, that is whole characters: [text, bytes used] or null. */
  function wholeCharacters(bytes, least) {
    for (let length = bytes.length; length > least; length--) {
      try {
        return [new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(new Uint8Array(bytes.slice(0, length))), length];
      } catch { /* not whole */ }
    }
    return null;
  }

  /**
   * Mends characters that are split between tokens. pieces: in reading order. Returns one string per piece: the token that completes
   * the character shows it, and the tokens before it no longer show its bytes. Bytes that never form a character stay.
   */
  D.mend = function (pieces) {
    const shown = pieces.slice();
    let held = [], holders = [];
    pieces.forEach((piece, i) => {
      if (!held.length && !piece.endsWith("⟩")) return;
      const [, lead, middle, tail] = SPLIT.exec(piece);
      const bytes = held.concat(values(lead)), whole = held.length && lead ? wholeCharacters(bytes, held.length) : null;
      if (whole) {
        for (const k of holders) shown[k] = shown[k].replace(/(?:⟨[0-9a-f]{2}⟩)+$/, "");
        const rest = bytes.slice(whole[1]);
        shown[i] = whole[0] + rest.map((b) => `⟨${b.toString(16).padStart(2, "0")}⟩`).join("") + middle + tail;
        held = middle ? values(tail) : rest;
        holders = held.length ? [i] : [];
      } else if (middle) {
        held = values(tail); holders = held.length ? [i] : [];
      } else if (bytes.length < 4) {
        held = bytes; holders = held.length ? holders.concat(i) : [];
      } else { held = []; holders = []; }
    });
    return shown;
  };

  /** 0.41, 0.004, 1, "under 0.0001". */
  D.prob = function (value) {
    if (value === null || value === undefined) return "–";
    if (value === 0 || value === 1) return String(value);
    if (value < 0.0001) return "under 0.0001";
    if (value < 0.01) return value.toFixed(4).replace(/0+$/, "");
    if (value > 0.995) return value > 0.9999 ? "over 0.9999" : value.toFixed(4).replace(/0+$/, "");
    return value.toFixed(2);
  };

  D.ms = (value) => (value >= 10000 ? `${(value / 1000).toFixed(1)} s` : value >= 100 ? `${Math.round(value)} ms` : value >= 10 ? `${value.toFixed(1)} ms` : `${value.toFixed(2)} ms`);
  D.plural = (count, one, many) => `${count} ${count === 1 ? one : many || one + "s"}`;

  let ruler = null;
  const widths = new Map();
  /** Width of a text in px in this font; each text is measured once. */
  D.textWidth = function (text, font) {
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
  };
})(globalThis.Draftscope);

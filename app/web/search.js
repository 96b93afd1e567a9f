// A search that forgives: hyphens, accents and capitals do not count, and a long word may have one wrong letter.

/**
 * A text as its words, plain: "N-gram lookup" is ["ngram", "lookup"].
 * @type {(text: string) => string[]}
 */
export const plainWords = (text) => text.normalize("NFD").replace(/[\p{M}'’\-‐‑–_]/gu, "").toLowerCase()
  .split(/[^\p{L}\p{N}]+/u).filter(Boolean);

const LONG = 5;          // letters of a word in which one may be wrong

/** Whether two words differ by at most one letter: another one, one more, one less, or two exchanged. */
function nearly(a, b) {
  if (Math.abs(a.length - b.length) > 1) return false;
  let i = 0, end = 0;
  while (i < a.length && a[i] === b[i]) i++;
  const restA = a.slice(i), restB = b.slice(i);
  while (end < Math.min(restA.length, restB.length) && restA.at(-1 - end) === restB.at(-1 - end)) end++;
  const leftA = restA.slice(0, restA.length - end), leftB = restB.slice(0, restB.length - end);
  return leftA.length <= 1 && leftB.length <= 1
    || leftA.length === 2 && leftB.length === 2 && leftA[0] === leftB[1] && leftA[1] === leftB[0];
}

/**
 * Whether each of the asked words is in a text, both as plainWords gives them.
 * @type {(asked: string[], words: string[]) => boolean}
 */
export function holds(asked, words) {
  const whole = words.join(" ");
  return asked.every((word) => whole.includes(word)
    || word.length >= LONG && words.some((other) => nearly(word, other)));
}

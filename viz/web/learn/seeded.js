// Random numbers from a seed: the same seed gives the same numbers on every machine.

/**
 * A function that gives numbers in [0, 1): mulberry32, a 32-bit generator.
 * @type {(seed: number) => () => number}
 */
export function seeded(seed) {
  let state = seed >>> 0;
  return function () {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

/**
 * Random numbers of these words: each set of words has its own. The first numbers of near seeds are alike, so they are
 * left out.
 * @type {(words: string[]) => () => number}
 */
export function seededBy(words) {
  let seed = 0x811c9dc5;
  for (const letter of words.join(" ")) seed = Math.imul(seed ^ letter.codePointAt(0), 0x01000193) >>> 0;
  const random = seeded(seed);
  for (let i = 0; i < 16; i++) random();
  return random;
}

/**
 * A copy of the list in random order.
 * @type {(list: any[], random: () => number) => any[]}
 */
export function shuffled(list, random) {
  const mixed = list.slice();
  for (let i = mixed.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [mixed[i], mixed[j]] = [mixed[j], mixed[i]];
  }
  return mixed;
}

// A one-line explanation of every term that the page uses, shown on hover and on focus.
import { clamp, el, freshId } from "./base.js";

/** @type {Record<string, string>} */
export const GLOSSARY = {
  accepted: "Drafted, judged by the target and kept: it is now part of the text.",
  rejected: "Drafted, judged by the target and thrown away. At temperature 0 that is every token but the target's " +
    "favourite.",
  ignored: "Drafted and read by the target, but the verdict did not need it: below a refused token, after a kept " +
    "sibling, or past the end.",
  recovered: "The target's own token, which replaces a drafted token that was refused.",
  bonus: "The target's own next token. Its pass provides it for free when every token on the path was kept.",
  plain: "Written by the target alone: nothing was drafted in this step.",
  root: "The last token of the text so far. The draft grows from it.",
  token: "A word or a piece of one: a model reads and writes its text token by token. " +
    "␣ is a space in it, ⏎ a new line.",
  draft: "The small, fast model or method that guesses tokens ahead.",
  target: "The large model whose text this is. Under a lossless rule the draft can never change what it would write.",
  p: "The target's probability, after temperature, top-k and top-p; at temperature 0 the plain one, where only the " +
    "likeliest token counts.",
  q: "The draft's probability for the token it guessed, after the same settings.",
  residual: "What is left of p after all refusals here, scaled to sum to 1. Drawing the new token from it keeps the " +
    "target's distribution.",
  coin: "A random number between 0 and 1. The token is kept when it falls below the probability of keeping.",
  step: "One round: draft some tokens, read all of them in a single pass of the target, keep a path, add one token " +
    "of the target.",
  "mean accepted": "New tokens divided by steps. Plain decoding gives 1.00; more is better.",
  lossless: "The text has exactly the distribution that the target alone would give it.",
  "law of a constrained text": "Masked decoding cuts p at each place to what may come next: not the target's " +
    "own law, given a valid text.",
  "law of a healed prompt": "The prompt's last tokens were taken back. The text has the target's own law, given " +
    "that it begins with what they spell.",
  "equal up to rounding": "The target's text, up to rounding in half precision: of two tokens that are nearly as " +
    "likely, drafting may change which one is written.",
  "another law": "The texts are meant to follow the law that is named here, not the target’s own.",
  lossy: "This rule may keep tokens that the target alone would not have written as often.",
  verify: "The single pass of the target that reads the whole draft and gives p for each of its tokens.",
  judge: "Comparing p and q and tossing the coins.",
  commit: "Moving the kept path into the target's memory and the text.",
  "draft time": "The time that guessing took in this step, before the target's pass.",
  "verify time": "The time of the target's pass in this step, which reads the whole draft.",
  "judge time": "The time that comparing p and q and tossing the coins took.",
  "commit time": "The time it took to move the kept path into the target's memory and the text.",
  "draft a step": "The time that guessing takes in a step, on average. Plain decoding guesses nothing.",
  "verify a step": "The time that the target's pass takes in a step, on average. Each drafted node is a row more to " +
    "compute.",
  icicle: "The same tree with probability as width: a wide cell is a likely path.",
  "compute time": "Time spent computing for this run, prompt included; pauses, other runs and compiling left " +
    "out. The speed comes from further runs.",
  depth: "How many tokens after the root: 1 is the very next token.",
  rule: "The rule that decides whether a drafted token is kept.",
  temperature: "At 0 the likeliest token always wins; the higher it is, the more chance decides.",
  keeping: "The probability that the rule keeps this token. It is 1 where p is at least as large as q.",
  lane: "One drafter's run, on its own clock of compute time.",
  "tokens/s": "New tokens in a second of compute time, the reading of the prompt included.",
  "against plain": "This speed divided by that of plain decoding in the same race.",
  "target calls": "How often the large model was run. One pass reads a whole draft; plain decoding needs a pass for " +
    "every token.",
  gained: "The bar above the line: one block for each token that the step added to the text, in the colour of " +
    "its kind.",
  spent: "The bar below the line: the milliseconds that the step took, stage by stage.",
  edge: "How sure the draft was of a token: the wider the line that leads to it, the higher its q.",
  underline: "The same kinds in the text: a solid line for accepted, dashes for recovered, a double line for bonus; " +
    "no line where nothing was drafted.",
  checked: "Plain decoding was run on the same prompt, with no draft at all, and the two texts were compared token " +
    "by token.",
  faster: "Tokens in the same compute time. The upright line is plain decoding; both ran in turn, many times. " +
    "In brackets: the middle half of ratios.",
  "on a GPU": "Not measured: 8 billion weights by that GPU's data sheet, with the tokens a step and the relative " +
    "price of drafting that are seen here.",
  none: "Plain decoding: nothing is drafted, the target writes one token a step.",
  chain: "A single line of guesses, one after the other.",
  tree: "Several guesses at once: each branch is one way in which the text may go on.",
  decoder: "Nothing is drafted: the target writes by another law, often several texts at once.",
  retrieval: "No model drafts: the tokens that followed the same words earlier in the text are copied.",
  diffusion: "A block of tokens is filled in at once instead of one token after the other.",
  heads: "Small extra heads on the target guess several tokens ahead.",
  self: "The target drafts for itself and skips some of its layers.",
};

/**
 * One tooltip for a whole view, on hover and on focus. term(word, text) makes a word with its explanation;
 * explain(element, word) explains an existing element. The page also holds each explanation once, hidden, for screen
 * readers.
 * @param {HTMLElement} root
 */
export function makeGlossary(root) {
  const tip = el("div", { class: "ds-tip", popover: "manual", "aria-hidden": "true", hidden: true });
  const lines = el("div", { hidden: true }), ids = new Map();
  root.append(tip, lines);
  let explained = null, leaving = 0;

  function describe(line) {
    if (!ids.has(line)) {
      ids.set(line, freshId("line"));
      lines.append(el("span", { id: ids.get(line), text: line }));
    }
    return ids.get(line);
  }
  const stay = () => clearTimeout(leaving);
  const leave = () => { stay(); leaving = setTimeout(hide, 120); };   // the pointer may move on to the tooltip itself
  const onKey = (event) => { if (event.key === "Escape") hide(); };

  function hide() {
    stay();
    tip.hidden = true;
    tip.hidePopover();
    explained = null;
    document.removeEventListener("keydown", onKey);
  }
  function show(element, line) {
    stay();
    explained = element;
    document.addEventListener("keydown", onKey);
    tip.textContent = line;
    tip.hidden = false;
    tip.showPopover();                                       // above everything else that sticks or floats
    const at = element.getBoundingClientRect(), box = root.getBoundingClientRect(), zoom = root.currentCSSZoom || 1;
    const [left, right] = [box.left, box.right].map((edge) => edge / zoom), high = tip.offsetHeight + 8;
    const x = clamp(at.left / zoom, left + 4, Math.max(left + 4, right - tip.offsetWidth - 4));
    const y = at.top / zoom > high ? at.top / zoom - high : at.bottom / zoom + 8;
    tip.style.left = `${x + scrollX / zoom}px`;
    tip.style.top = `${y + scrollY / zoom}px`;
  }
  tip.addEventListener("pointerenter", stay);
  tip.addEventListener("pointerleave", hide);

  /** Explain an element with this sentence. */
  function tell(element, line) {
    element.setAttribute("aria-describedby", describe(line));
    element.addEventListener("pointerenter", () => show(element, line));
    element.addEventListener("focus", () => show(element, line));
    element.addEventListener("pointerleave", leave);
    element.addEventListener("blur", hide);
    return element;
  }
  const explain = (element, word) => tell(element, GLOSSARY[word]);
  const glossary = {
    explain, tell, hide,
    term(word, text, ...content) {
      const button = el("button",
        { type: "button", class: "ds-term", "data-term": word, "aria-label": text ? null : word }, ...content);
      if (text) button.append(text);
      return explain(button, word);
    },
    /** A word from a trace, with an explanation if the glossary has one. */
    known: (word, text) => (Object.hasOwn(GLOSSARY, word) ? glossary.term(word, text) : document.createTextNode(text)),
    /** Hide the tooltip if its element was replaced. */
    tidy() { if (explained && !explained.isConnected) hide(); },
  };
  return glossary;
}

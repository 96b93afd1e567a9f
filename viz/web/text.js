// The text as a strip of tokens: the prompt in grey, then every token of the run with its status.
import { el, setAttributes, writeText } from "./base.js";
import { promptWords } from "./seen-picture.js";
import { makeMender, runningText, visible, written } from "./words.js";

const UNDERLINE = 2;   // px by which the lowest line under a word reaches out of its row; as in text.css

/**
 * hooks: onPick(index), onHover(index | null).
 * @param {HTMLElement} box
 * @param {{ onPick(index: number): void, onHover(index: number | null): void }} hooks
 */
export function textStrip(box, hooks) {
  const prompt = el("span", { class: "ds-prompt" });
  const output = el("span", { class: "ds-output", role: "listbox", "aria-label": "Tokens written" });
  box.append(prompt, output);
  setAttributes(box, { role: "group", "aria-label": "Text", tabindex: 0 });
  // every token of this run that was ever shown; the first `shown` are on the page
  const spans = [], raw = [];
  let mender = makeMender(), shown = 0, focusable = null, differs = null, standing = [], hovered = [];

  const indexOf = (event) => {
    const span = event.target.closest("[data-index]");
    return span ? Number(span.getAttribute("data-index")) : null;
  };
  box.addEventListener("click", (event) => { const i = indexOf(event); if (i !== null) hooks.onPick(i); });
  box.addEventListener("pointerover", (event) => hooks.onHover(indexOf(event)));
  box.addEventListener("pointerleave", () => hooks.onHover(null));
  box.addEventListener("focusin", (event) => hooks.onHover(indexOf(event)));
  box.addEventListener("focusout", () => hooks.onHover(null));
  box.addEventListener("keydown", (event) => {
    const i = indexOf(event);
    if (i === null) return;
    const to = event.key === "ArrowDown" ? i + 1 : event.key === "ArrowUp" ? i - 1 : null;
    if (event.key === "Enter") hooks.onPick(i);
    else if (to !== null && to >= 0 && to < shown) rove(to, true);
    else return;
    event.preventDefault();
  });

  function rove(index, focus) {
    if (focusable) focusable.tabIndex = -1;
    focusable = spans[index] || null;
    if (!focusable) return;
    focusable.tabIndex = 0;
    if (focus) focusable.focus();
  }

  /** Write the tokens from `index` on: a character that was split between them belongs to the one that completes it. */
  function label(index) {
    for (let i = index; i < spans.length; i++) writeText(spans[i], written(mender.labels[i]));
  }

  /** Whether a token is a word with a leading space, which disappears at a line break. */
  const spaced = (piece, before) => /^ \S+$/.test(piece) && !/\s$/.test(before);

  function make(piece, face, status, look, step) {
    const index = spans.length, before = index ? raw[index - 1] : prompt.textContent;
    const kind = look === "plain" ? "written by the target" : status;
    spans.push(el("span", { class: "ds-token", role: "option", "aria-selected": "false", tabindex: -1,
      "data-index": index, "data-status": status, "data-look": look === status ? null : look, "data-from-step": step,
      "data-spaced": spaced(piece, before), "data-newline": piece.includes("\n"), "data-differs": index === differs,
      "aria-label": `${visible(face)}, ${kind}, step ${step + 1}` }));
    raw.push(piece);
    label(mender.push(piece));
  }

  /** Make the elements of the first `want` tokens. */
  function prepare(model, want) {
    for (let s = spans.length ? model.stepOfIndex(spans.length) : 0; spans.length < want; s++) {
      const step = model.steps[s];
      for (let j = spans.length - step.view.firstIndex; j < step.view.tokens; j++)
        make(step.output.pieces[j], model.outputFace(step, j), model.outputStatus(step, j), model.outputLook(step, j),
          s);
    }
  }

  /** Put the first `want` tokens on the page. */
  function extend(want) {
    if (shown > want) {
      for (let i = want; i < shown; i++) spans[i].remove();
      shown = want;
      return;
    }
    const news = document.createDocumentFragment();
    for (; shown < want; shown++) news.append(spans[shown]);
    output.append(news);
  }

  function stand(from, to) {
    for (const span of standing) setAttributes(span, { "data-now": null, "aria-selected": "false" });
    standing = spans.slice(from, to);
    for (const span of standing) setAttributes(span, { "data-now": "", "aria-selected": "true" });
  }

  return {
    reset(run) {
      prompt.textContent = run ? runningText(promptWords(run)) : "";
      output.replaceChildren();
      spans.length = raw.length = shown = 0;
      mender = makeMender();
      standing = []; hovered = [];
      focusable = differs = null;
    },
    /** Show the tokens of the first `steps` steps and highlight those of step `now`. */
    draw(model, steps, now) {
      const last = model.steps[steps - 1], want = last ? last.view.firstIndex + last.view.tokens : 0;
      prepare(model, want);
      if (model.summary && spans.length === model.tokens) label(mender.finish());
      extend(want);
      const step = now < steps ? model.steps[now] : null;
      stand(step ? step.view.firstIndex : 0, step ? step.view.firstIndex + step.view.tokens : 0);
      if (shown && (!focusable || !focusable.isConnected)) rove(0, false);
    },
    /**
     * The scroll position that shows the newest token in whole lines; null if it is visible already.
     * Reads the layout.
     */
    newest() {
      if (!shown) return null;
      const { offsetTop, offsetHeight, textContent } = spans[shown - 1];
      const line = parseFloat(getComputedStyle(box).lineHeight) || 1;
      const high = textContent.endsWith("\n") ? line : offsetHeight;      // without the line that it begins
      const below = offsetTop + high - box.clientHeight;
      if (below <= box.scrollTop && offsetTop >= box.scrollTop) return null;
      if (below > 0) return Math.ceil(below / line) * line + UNDERLINE;
      return Math.max(0, Math.floor(offsetTop / line) - 1) * line;   // with the line before it
    },
    scroll(top) { if (top !== null) box.scrollTop = top; },
    /** Mark the first token in which this text differs from the others. */
    differ(index) {
      if (differs !== null && spans[differs]) spans[differs].removeAttribute("data-differs");
      differs = index;
      if (index !== null && spans[index]) spans[index].setAttribute("data-differs", "");
    },
    hover(index, count) {
      for (const span of hovered) span.removeAttribute("data-hover");
      hovered = index === null ? [] : spans.slice(index, Math.min(index + count, shown));
      for (const span of hovered) span.setAttribute("data-hover", "");
    },
    /** The token's element, if it is on the page. */
    element: (index) => (index < shown && spans[index]) || null,
  };
}

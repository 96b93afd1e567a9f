// One line for every word the page uses, shown on hover and on focus.
(function (D) {
  "use strict";
  D.GLOSSARY = {
    accepted: "Drafted, judged by the target and kept: it is now part of the text.",
    rejected: "Drafted, judged by the target and thrown away.",
    ignored: "Drafted but not judged: below a refused token, beside a kept one, or after the end of the text.",
    recovered: "The target's own token, put where a drafted one was refused.",
    bonus: "The target's own next token, free of charge after everything on the path was kept.",
    root: "The last token of the text so far. The draft grows from it.",
    draft: "The small, fast model or trick that guesses tokens ahead.",
    target: "The large model whose text this is. It judges every guess; the draft can never change what it would write.",
    p: "The target's probability for a token, after temperature, top-k and top-p.",
    q: "The draft's probability for the token it guessed, after the same settings.",
    residual: "What p has more than q. After a refusal the token is drawn anew from this, and that makes the whole exact.",
    coin: "A random number between 0 and 1. The token is kept when it falls below the probability of keeping.",
    step: "One round: draft a tree, judge all of it in a single pass of the target, keep a path, add one token of the target.",
    "mean accepted": "New tokens divided by steps. Plain decoding gives 1.00; more is better.",
    lossless: "The text has exactly the distribution the target alone would give it.",
    lossy: "This rule may keep tokens that the target alone would not have written as often.",
    verify: "The one pass of the target that judges the whole draft.",
    judge: "Comparing p and q and tossing the coins.",
    commit: "Moving the kept path into the target's memory and the text.",
    icicle: "The same tree with probability as width: a wide cell is a path that is likely as a whole.",
    "compute time": "Time spent computing for this lane only; the lanes take turns, and pauses are not counted.",
  };

  /** One tooltip for a whole view; term(word, text) makes a word that explains itself. */
  D.glossary = function (root) {
    const id = D.freshId("tip");
    const tip = D.el("div", { class: "ds-tip", id, role: "tooltip", hidden: true });
    root.append(tip);
    const hide = () => { tip.hidden = true; };
    function show(button, word) {
      tip.textContent = D.GLOSSARY[word];
      tip.hidden = false;
      const at = button.getBoundingClientRect(), box = root.getBoundingClientRect(), zoom = root.currentCSSZoom || 1;
      const left = D.clamp((at.left - box.left) / zoom, 4, Math.max(4, root.clientWidth - tip.offsetWidth - 4));
      tip.style.left = `${left}px`;
      const above = at.top / zoom - tip.offsetHeight - 8 > 0;
      tip.style.top = `${above ? (at.top - box.top) / zoom - tip.offsetHeight - 8 : (at.bottom - box.top) / zoom + 8}px`;
    }
    root.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
    return {
      term(word, text, ...content) {
        const button = D.el("button", { type: "button", class: "ds-term", "data-term": word, "aria-describedby": id }, ...content);
        if (text) button.append(text);
        button.addEventListener("pointerenter", () => show(button, word));
        button.addEventListener("focus", () => show(button, word));
        button.addEventListener("pointerleave", hide);
        button.addEventListener("blur", hide);
        return button;
      },
      hide,
    };
  };

  /** The permanent legend: every status with its shape. */
  D.legend = function (glossary) {
    const examples = [["accepted", "kept"], ["rejected", "refused"], ["ignored", "unread"], ["recovered", "anew"], ["bonus", "free"], ["root", "from"]];
    return D.el("ul", { class: "ds-legend", "aria-label": "Legend" },
      ...examples.map(([status, text]) => D.el("li", {}, glossary.term(status, status, D.legendChip(status, text)))));
  };
})(globalThis.Draftscope);

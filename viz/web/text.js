// The text as a strip of tokens: the prompt dim, then every token the run wrote, with its status.
(function (D) {
  "use strict";

  /** hooks: onPick(index), onHover(index | null). */
  D.textStrip = function (box, hooks) {
    const prompt = D.el("span", { class: "ds-prompt" });
    const output = D.el("span", { class: "ds-output", role: "listbox", "aria-label": "Tokens written" });
    box.append(prompt, output);
    D.set(box, { role: "group", "aria-label": "Text", tabindex: 0 });
    const spans = [], raw = [];
    let current = null, focusable = null, differs = null;

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
      else if (to !== null && spans[to]) rove(to, true);
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

    /** Write the texts of the tokens around `index` again: characters may be split between neighbours. */
    function relabel(index) {
      const from = Math.max(0, index - 3), near = raw.slice(from, index + 1);
      const mended = near.some((piece) => piece.includes("⟨")) ? D.mend(near) : near;
      mended.forEach((text, k) => {
        const span = spans[from + k], shown = D.running(text);
        if (span.textContent !== shown) span.textContent = shown;
      });
    }

    function append(piece, status, step) {
      const index = spans.length;
      const span = D.el("span", { class: "ds-token", role: "option", "aria-selected": "false", tabindex: -1, "data-index": index, "data-status": status,
        "data-from-step": step, "data-newline": piece.includes("\n"), "data-differs": index === differs, "aria-label": `${D.visible(piece)}, ${status}, step ${step + 1}` });
      spans.push(span); raw.push(piece);
      output.append(span);
      if (piece.includes("⟨")) relabel(index); else span.textContent = D.running(piece);
    }

    return {
      reset(run) {
        prompt.textContent = run ? D.running(run.prompt.text) : "";
        output.replaceChildren();
        spans.length = raw.length = 0;
        current = focusable = differs = null;
      },
      /** Show the tokens of the first `steps` steps; those of step `now` stand out. */
      draw(model, steps, now) {
        const shown = model.steps[steps - 1], want = shown ? shown.view.firstIndex + shown.view.tokens : 0;
        if (spans.length > want) {
          spans.splice(want).forEach((span) => span.remove());
          raw.length = want;
          if (want) relabel(want - 1);
        }
        for (let s = spans.length ? model.stepOfIndex(spans.length - 1) : 0; s < steps; s++) {
          const step = model.steps[s];
          for (let j = Math.max(0, spans.length - step.view.firstIndex); j < step.view.tokens; j++) {
            append(step.output.pieces[j], model.outputStatus(step, j), s);
          }
        }
        if (current !== now || spans.length !== want) {
          output.querySelectorAll("[data-now]").forEach((span) => { D.set(span, { "data-now": null, "aria-selected": "false" }); });
        }
        current = now;
        const step = model.steps[now];
        if (step && now < steps) {
          for (let i = step.view.firstIndex; i < step.view.firstIndex + step.view.tokens; i++) D.set(spans[i], { "data-now": "", "aria-selected": "true" });
        }
        if (spans.length && (!focusable || !focusable.isConnected)) rove(0, false);
        if (spans.length) {
          const end = spans[spans.length - 1], below = end.offsetTop + end.offsetHeight - box.clientHeight;
          if (below > box.scrollTop || end.offsetTop < box.scrollTop) box.scrollTop = Math.max(0, below + 8);
        }
      },
      /** Mark the token at which this text parts from the others. */
      differ(index) {
        differs = index;
        output.querySelectorAll("[data-differs]").forEach((span) => span.removeAttribute("data-differs"));
        if (index !== null && spans[index]) spans[index].setAttribute("data-differs", "");
      },
      hover(index, count) {
        output.querySelectorAll("[data-hover]").forEach((span) => span.removeAttribute("data-hover"));
        if (index !== null) for (const span of spans.slice(index, index + count)) span.setAttribute("data-hover", "");
      },
      element: (index) => spans[index] || null,
    };
  };
})(globalThis.Draftscope);

// The run in one line: drafter, target, rule, and its numbers (while it plays, the numbers up to the current step).
(function (D) {
  "use strict";
  const millions = (n) => (n >= 1e9 ? `${(n / 1e9).toFixed(1)} B` : n >= 1e6 ? `${(n / 1e6).toFixed(1)} M` : n >= 1e3 ? `${Math.round(n / 1e3)} k` : String(n));

  D.runFacts = function (glossary) {
    const title = D.el("div", { class: "ds-run-title", title: "Drafter, target with its number of parameters, rule, temperature" }), numbers = D.el("dl", { class: "ds-run-numbers" });
    const figure = (word, label) => {
      const value = D.el("dd", {}), term = glossary.term(word, label);
      numbers.append(D.el("div", {}, D.el("dt", {}, term), value));
      return value;
    };
    const mean = figure("mean accepted", "tokens a step"), time = figure("compute time", "compute time");
    let told = null;
    return {
      element: D.el("div", { class: "ds-run" }, title, numbers),
      draw(model, index) {
        if (told !== model.run) {
          told = model.run;
          title.replaceChildren();
          if (told) {
            const { drafter, verifier, target, sampling } = told;
            const word = D.exactness(verifier), badge = glossary.term(word, word);
            badge.classList.add("ds-badge");
            const size = target.parameters ? ` (${millions(target.parameters)})` : "";
            const who = drafter.family === "none" ? ["plain decoding", "by"] : [D.title(drafter.title || drafter.key), "drafts for"];
            const other = (drafter.parts || {}).draft, draft = other && other !== "draft" ? ` with ${D.shorten(D.visible(other), 40)}` : "";
            title.append(D.el("strong", {}, glossary.known(drafter.family, who[0])), `${draft} ${who[1]} ${D.shorten(D.visible(target.name), 40)}${size}, `,
              glossary.term("rule", "rule"), ` ${D.title(verifier.title || verifier.key)} `, badge, " ", glossary.term("temperature", "temperature"), ` ${sampling.temperature}`);
          }
        }
        const step = model.steps[index];
        const tokens = step ? step.view.firstIndex + step.view.tokens : 0;
        D.write(mean, step ? (tokens / (index + 1)).toFixed(2) : "–");
        D.write(time, step ? D.ms(step.view.start + step.view.total) : "–");
      },
    };
  };
})(globalThis.Draftscope);

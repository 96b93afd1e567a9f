// The methods, one line each that opens, with a search and filters. All is text from the cards; no request is made.
/** @import { Component } from "./types.d.ts" */
import { methodCard } from "./method-card.js";
import { offer } from "./offer.js";
import { holds, plainWords } from "./search.js";
import { el, find } from "../../viz/web/base.js";

/** The words that the search looks through. */
const haystack = (method, families) => plainWords([method.title, method.key, families[method.family], method.kind,
  method.mechanism, ...Object.values(method.paper),
  ...(offer.drafters[method.key]?.options || []).map(({ name }) => name)].join(" "));

/**
 * c.props: methods: the cards, families: their names by key. The value is the name of the example to watch.
 * @type {(c: Component) => void}
 */
export function methods(c) {
  const { methods: all, families } = c.props;
  const search = el("input",
    { type: "search", id: "method-search", class: "pg-method-field", placeholder: "A name, an author, a word",
      oninput: draw });
  const list = (id, choices) => el("select", { id, class: "pg-method-field", onchange: draw },
    ...choices.map(([value, text]) => el("option", { value, text })));
  const here = new Set(all.map((method) => method.family));
  const family = list("method-family", [["", "all"], ...Object.entries(families).filter(([key]) => here.has(key))]);
  const exact = list("method-exact", [["", "all"], ["exact", "lossless"], ["lossy", "lossy"],
    ["other", "another law"]]);
  const training = list("method-training", [["", "all"], ["no", "needs none"], ["yes", "needs training"]]);
  const labelled = (text, field) => el("div", {}, el("label", { for: field.id, text }), field);
  const count = el("p", { class: "pg-help", role: "status" });
  const cards =
    all.map((method) =>
      ({ method, words: haystack(method, families), element: methodCard(method, families, watchIt) }));
  const shelf = el("div", { class: "pg-methods" }, ...cards.map(({ element }) => element));

  function fits({ method, words }) {
    const lossless = { exact: ["exact"], lossy: ["lossy"], both: ["exact", "lossy"], other: ["other"] }[
      method.exactness] || [];
    return holds(plainWords(search.value), words)
      && (!family.value || method.family === family.value) && (!exact.value || lossless.includes(exact.value))
      && (!training.value || method.needs_training === (training.value === "yes"));
  }

  function draw() {
    for (const card of cards) card.element.hidden = !fits(card);
    const left = cards.filter(({ element }) => !element.hidden).length;
    count.textContent = left === cards.length ? `${left} methods` : left ? `${left} of ${cards.length} methods`
      : `None of ${cards.length} methods. Settings for vLLM, SGLang, llama.cpp and transformers are in the tab Tune.`;
  }

  /** Watch opens with the example's finished run and its settings. */
  function watchIt(name) {
    const tab = find("#rooms [role=tab][data-tab-id='watch']");
    tab.click();
    tab.focus();
    scrollTo({ top: 0, behavior: "instant" });
    c.props.value = name;
    c.trigger("chosen");
  }

  c.element.append(el("search", { class: "pg-method-filters" }, labelled("Search", search), labelled("Family", family),
    labelled("Output", exact), labelled("Training", training), count), shelf);
  draw();
}

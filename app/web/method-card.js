// One method: a line that opens on what it is, how it works, what its paper claims, what was measured here.
import { el, followTheme, freshId } from "../../viz/web/base.js";
import { exhibitRow } from "../../viz/web/exhibits.js";

const TAGS = { exact: ["lossless"], lossy: ["lossy"], both: ["lossless", "lossy"], other: ["another law"],
  "n/a": [] };

/** The figures of the card's example, or of a recipe's part; nothing where none were taken. */
function measured({ new_tokens: written, target_passes: passes, tokens_per_step: gain, acceptance_rate: rate, before,
  after, kept_before: first, kept_after: last }) {
  if (before !== undefined) return [el("strong", { text: `${after.toFixed(2)} tokens a step` }),
    ` on held-out texts, in the place of ${before.toFixed(2)}.`];
  if (first !== undefined) return [el("strong", { text: `${(100 * last).toFixed(1)} % of its draws are kept` }),
    ` at temperature 1 on held-out texts, in the place of ${(100 * first).toFixed(1)} %.`];
  if (written === undefined) return [];
  const kept = rate === null ? "" : `; a guess was kept in ${Math.round(rate * 100)} % of the places ` +
    "where there was one";
  return [el("strong", { text: `${gain.toFixed(2)} tokens a step` }),
    `: ${written} tokens in ${passes} passes of the target${kept}. Passes are counted here, not time.`];
}

/** What a lossy method costs on held-out prompts, beside plain decoding. */
function priced({ texts, exact, temperature, bits_per_byte: bits, plain_bits_per_byte: plain }) {
  const share = bits / plain, others = Math.round((1 - exact) * texts);
  const taste = share < 0.95 ? "Its texts vary less: they keep closer to what the target finds likely."
    : share > 1.05 ? "The target finds its texts less likely than those of plain decoding."
    : "The target finds its texts about as likely as those of plain decoding.";
  return [el("strong", { text: `${others} of ${texts} texts` }),
    ` ${others === 1 ? "differs" : "differ"} from those of plain decoding, at temperature ${temperature}` +
      `${temperature ? ", where chance alone makes texts differ, too" : ""}. `,
    el("span", { text: taste, title: `Bits per byte of text, by the target: ${bits.toFixed(2)}; plain decoding: ` +
      `${plain.toFixed(2)}. Fewer bits mean a likelier text.` })];
}

/** What an open card shows below its line. */
function inside(method, families, watchIt, id) {
  const { paper, claim, part, price = {} } = method, here = measured(method.measured);
  const row = (name, ...content) => [el("dt", { text: name }), el("dd", {}, ...content)];
  const rows = [
    ...(claim.text ? row("Claimed", el("span", { text: claim.text }),
      el("span", { class: "pg-method-setting", text: claim.setting })) : []),
    ...(here.length ? row(method.measured.new_tokens === undefined ? "Here" : "Its example", ...here) : []),
    ...(price.texts ? row("Price", ...priced(price)) : []),
    ...(method.loses ? row("Loses", el("span", { text: method.loses })) : []),
    ...(part.name && !method.available ? row("Missing",
      el("span", { text: `The part ${part.name} is not shipped; the recipe ${part.recipe} makes it.` })) : []),
  ];
  const watch = method.example && el("button",
    { type: "button", class: "pg-tool pg-go pg-method-watch", text: "Watch it",
      "aria-describedby": id, onclick: () => watchIt(method.example) });
  const figure = (method.figure || []).length ? exhibitRow(method.figure) : null;
  if (figure) followTheme(figure);
  return [
    el("p", { class: "pg-method-how", text: method.mechanism }),
    el("p", { class: "pg-method-look" }, el("strong", { text: "Look for: " }), method.watch),
    figure,
    el("dl", {}, ...rows),
    el("div", { class: "pg-method-foot" }, paper.title && el("p", { class: "pg-method-paper" },
      el("cite", { text: paper.title }),
      el("span", { text: ` ${paper.authors}. ${paper.venue}, ${paper.year}.` })), watch),
  ].filter(Boolean);
}

/**
 * The line of a method; what is below it is made when it is opened for the first time. watchIt(name): called to show
 * the example of this name.
 * @type {(method: any, families: Record<string, string>, watchIt: (example: string) => void) => HTMLElement}
 */
export function methodCard(method, families, watchIt) {
  const id = freshId("method"), family = families[method.family] || method.family;
  const body = el("div", { class: "pg-method-body" });
  const card = el("details", { class: "pg-method", "data-method": method.key, ontoggle() {
    if (card.open && !body.firstChild) body.append(...inside(method, families, watchIt, id));
  } },
    el("summary", {},
      el("h2", { id, text: method.title }),
      el("span", { class: "pg-method-line", text: method.mechanism }),
      el("span", { class: "pg-method-kind" },
        el("span", { text: method.family === method.kind ? family : `${family} · ${method.kind}` }),
        ...TAGS[method.exactness].map((word) => el("span", { class: "pg-tag", "data-tag": word, text: word },
          word === "lossy" && method.exactness === "both" && el("span", { text: " by its own rule" }))),
        method.needs_training && el("span", { class: "pg-tag", text: "trained" }))),
    body);
  return card;
}

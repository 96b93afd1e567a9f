// Five numbers are called acceptance. This card works all of them out from counts, typed or of the record.
/** @import { AcceptanceLine, Counts, Position, TuneHost, TuningRecord } from "./types.d.ts" */
import { el, freshId, writeText } from "../base.js";
import { acceptanceOf } from "./record.js";

const LINE = /^\s*(\d{1,9})\s*[,/: \t]\s*(\d{1,9})\s*$/, MOST = 64;
const COUNTS = /** @type {const} */ ([["steps", "Steps that drafted"], ["drafted", "Drafted tokens"],
  ["new_tokens", "New tokens"]]);

/**
 * Counts as they are typed, a position on each line: kept, then reached. null where a line cannot be read.
 * @type {(text: string) => Position[] | null}
 */
export function typedPositions(text) {
  const read = text.split("\n").filter((line) => line.trim()).slice(0, MOST).map((line) => LINE.exec(line));
  if (!read.length || read.includes(null)) return null;
  const counts = read.map(([, accepted, reached], i) => ({ position: i + 1, reached: Number(reached),
    accepted: Number(accepted) }));
  return counts.every(({ accepted, reached }) => accepted <= reached) ? counts : null;
}

/** @type {(host: TuneHost) => { element: HTMLElement, show(record: TuningRecord): void }} */
export function fiveNumbers(host) {
  const id = freshId("counts"), said = el("p", { role: "status" }), result = el("dl", { class: "tn-five" });
  const counts = el("textarea",
    { id, class: "tn-field", rows: 4, maxlength: 2000, oninput: () => { typed = true; } });
  const fields = COUNTS.map(([name, words]) => ({ name, words, input: el("input", { id: `${id}-${name}`, type: "number",
    min: 0, class: "tn-field", oninput: () => { typed = true; } }) }));
  let typed = false, taken = /** @type {AcceptanceLine | null} */ (null);
  counts.value = "80 / 100\n56 / 80\n34 / 56";
  const [steps, drafted, written] = fields.map(({ input }) => input);
  Object.assign(steps, { value: "100" });
  Object.assign(drafted, { value: "300" });
  Object.assign(written, { value: "270" });
  const labelled = (words, field) => el("div", {}, el("label", { for: field.id, text: words }), field);
  const button = el("button", { type: "button", class: "ln-button", text: "Convert", onclick: convert });
  const element = el("details", { class: "tn-card ds-card", id: "tune-five" },
    el("summary", {}, el("h2", { text: "Five numbers are called acceptance: turn one into the others" })),
    el("p", { text: "Papers and engines print different ones under the same name. Give the counts, and here are all "
      + "five, with who prints which." }),
    el("div", { class: "tn-row" }, labelled("Kept / reached, a position on each line", counts),
      ...fields.map(({ words, input }) => labelled(words, input)), button), said, result);

  async function convert() {
    const read = typed || !taken ? typedPositions(counts.value) : null;
    if (!typed && taken) { await told(taken); return; }
    if (!read) {
      writeText(said, "Write a position on each line: how many were kept, a slash, how many steps reached it.");
      return;
    }
    const totals = Object.fromEntries(fields.filter(({ input }) => input.value !== "")
      .map(({ name, input }) => [name, Number(input.value)]));
    await told({ positions: read, ...totals });
  }
  /** @type {(given: Counts) => Promise<void>} */
  async function told(given) {
    let answer;
    try { answer = await host.five(given); } catch { answer = { error: "The server did not answer; try again." }; }
    writeText(said, answer.error || "");
    result.replaceChildren(...(answer.numbers || []).map((one) => el("div", {},
      el("dt", {}, el("strong", { text: one.value || "–" }), el("span", { text: ` ${one.title}` })),
      el("dd", {}, el("code", { text: one.formula }), el("p", { text: one.means }),
        el("p", { class: "ln-quiet", text: one.printed_by.replaceAll("\x60", "") })))));
  }
  return { element, show(record) {
    const lines = acceptanceOf(record, "all"), { answer } = record;
    const best = answer?.best_tried || answer?.drafter;
    const line = lines.find(({ drafter }) => drafter === best) || lines.find((one) => one.positions.length) || lines[0];
    if (typed || !line || line === taken) return;
    taken = line;
    const known = line.positions.filter(({ reached }) => reached !== null);
    counts.value = known.map(({ accepted, reached }) => `${accepted} / ${reached}`).join("\n");
    for (const { name, input } of fields) input.value = line[name] === null ? "" : String(line[name]);
  } };
}

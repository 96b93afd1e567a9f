// Estimates for a machine that is not here: the acceptance measured here, with what passes cost there. They stand in a
// block of their own, so that nobody takes them for measurements.
/** @import { TuneHost, TuningRecord } from "./types.d.ts" */
import { el, freshId, writeText } from "../base.js";
import { ROUGH, drafterFigure } from "./charts.js";
import { tuneFigure } from "./figure.js";
import { recordReader } from "./record.js";

const OWN = "own";

/** @type {(host: TuneHost) => { element: HTMLElement, show(record: TuningRecord): void }} */
export function elsewhere(host) {
  const machineId = freshId("machine"), costsId = freshId("costs");
  const machine = el("select", { id: machineId, class: "tn-field", onchange: settle },
    ...host.machines.map((name) => el("option", { value: name, text: name })),
    el("option", { value: OWN, text: "Costs of my own" }));
  const costs = el("textarea", { id: costsId, class: "tn-field", rows: 2, maxlength: 2000,
    placeholder: "1:20, 2:20.5, 4:21, 8:24" });
  const costsLine = el("div", {}, el("label", { for: costsId, text: "Milliseconds of a pass, by rows" }), costs);
  const button = el("button", { type: "button", class: "ln-button", text: "Estimate", onclick: ask });
  const said = el("p", { class: "ln-quiet", role: "status" }), result = el("div");
  const element = el("section", { class: "tn-elsewhere", "aria-labelledby": `${machineId}-name`, hidden: true },
    el("h2", { id: `${machineId}-name`, text: "On another machine: an estimate, not a measurement" }),
    el("p", { text: "How often drafts are kept was measured here and goes along. What a pass costs there is worked out "
      + "from the machine’s data sheet, or from the costs that you paste." }),
    el("div", { class: "tn-row" }, el("div", {}, el("label", { for: machineId, text: "Machine" }), machine), costsLine,
      button), said, result);

  function settle() { costsLine.hidden = machine.value !== OWN; }
  async function ask() {
    writeText(said, "Working it out…");
    button.disabled = true;
    let answer;
    try {
      answer = await host.estimated(machine.value === OWN ? { costs: costs.value } : { machine: machine.value });
    } catch { answer = { error: "The server did not answer; try again." }; }
    button.disabled = false;
    draw(answer.error ? [] : recordReader()(answer.lines).estimate,
      answer.error || "These settings cannot be estimated from this record.");
  }
  function draw(settings, none) {
    const figure = settings.length ? drafterFigure(settings, null, host) : null;
    writeText(said, figure ? `Estimated for ${settings[0].machine || "these costs"}.` : none);
    result.replaceChildren(...(figure ? [tuneFigure({ ...figure, key: "estimate",
      title: `Estimate: ${figure.title}`, note: "An estimate: tokens a second there, as a multiple of plain decoding "
        + "there. Launch times and the drafter’s work on the host are not in it unless the costs hold them. "
        + ROUGH })] : []));
  }
  settle();
  return { element, show(record) {
    element.hidden = !record.head || !record.acceptance.length;
    if (element.hidden) draw([], "");
  } };
}

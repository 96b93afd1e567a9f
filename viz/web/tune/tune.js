// A tuning, drawn from the lines of its record: the answer first, then the figures, then what can be done with it.
/** @import { TuneHost, TuningRecord } from "./types.d.ts" */
/** @import { State, View } from "../view-types.d.ts" */
import { el, followTheme, followWidth, freshId, writeText } from "../base.js";
import { plural } from "../words.js";
import { answerCard, settingsTable } from "./answer.js";
import { acceptanceFigure, costFigure, drafterFigure, textsFigure } from "./charts.js";
import { elsewhere } from "./elsewhere.js";
import { tuneFigure } from "./figure.js";
import { fiveNumbers } from "./five.js";
import { PLAIN, answeredSetting, promptKinds, recordReader } from "./record.js";
import { takeAlong } from "./take.js";

const MOST = 64;     // drafters to choose from
const PAUSE = 400;   // ms between two drawings of a record that grows

/** A place whose content is made anew only when its key changes; the focus stays in it. */
function place() {
  const element = el("div", { class: "tn-place" });
  let held = "";
  return { element, draw(key, make) {
    if (key === held) return;
    held = key;
    const boxes = () => [...element.querySelectorAll(".tn-box, select")];
    const at = boxes().indexOf(document.activeElement), fresh = make();
    element.replaceChildren(...(fresh ? [fresh] : []));
    boxes()[at]?.focus({ preventScroll: true });
  } };
}

/** A choice above a figure. */
function choice(label, choices, value, chosen) {
  const id = freshId("choice");
  const list = el("select", { id, class: "tn-field", onchange: () => chosen(list.value) },
    ...choices.map(([key, text]) => el("option", { value: key, text, selected: key === value })));
  return choices.length > 1 ? el("p", { class: "tn-choice" }, el("label", { for: id, text: label }), list) : null;
}

const time = (seconds) => (seconds >= 90 ? `about ${Math.round(seconds / 60)} minutes`
  : `about ${plural(Math.max(1, Math.round(seconds)), "second")}`);

/**
 * Draw the tuning inside an element.
 * @type {(element: Element, host: TuneHost) => View & { record(): TuningRecord }}
 */
export function mountTune(element, host) {
  const bar = el("progress", { max: 1, value: 0, "aria-label": "How far the measuring has come" }), doing = el("span");
  const progress = el("p", { class: "tn-progress", hidden: true }, bar, doing);
  const [answer, drafters, texts, acceptance, costs, settings] = Array.from({ length: 6 }, place);
  const other = el("p", { class: "ln-quiet", role: "status", hidden: true,
    text: "Measured with other settings than those above." });
  const unread = el("p", { class: "ln-quiet", role: "status", hidden: true });
  const blocks = [takeAlong(host), elsewhere(host), fiveNumbers(host)];
  const root = el("div", { class: "ds ln tn" }, progress, other, answer.element, unread,
    el("div", { class: "tn-figures" }, ...[drafters, texts, acceptance, costs].map((one) => one.element)),
    settings.element, ...blocks.map((block) => block.element));
  element.append(root);
  const ends = [followTheme(root), followWidth(root)];
  const reader = recordReader();
  let record = reader(""), running = false, timer = 0, kind = "", drafter = "";

  function draw() {
    timer = 0;
    const told = JSON.stringify, { setting, answer: now } = record;
    const drafted = setting.filter((one) => one.drafter !== PLAIN), compared = drafted.length > 0;
    answer.draw(told([now, running, record.head, Boolean(record.acceptance.length), record.cost,
      answeredSetting(record)]),
      () => answerCard(record, running, host));
    drafters.draw(told([setting, now]),
      () => (compared ? tuneFigure(drafterFigure(setting, now, host)) : null));
    const tried = [...new Set(drafted.filter((one) => one.texts > 1).map((one) => one.drafter))].slice(0, MOST);
    const best = [drafter, now?.drafter, now?.best_tried, tried[0]].find((key) => key && tried.includes(key));
    texts.draw(told([setting, best, now]), () => best && tuneFigure(textsFigure(setting, best, now, host),
      choice("Drafter", tried.map((key) => [key, host.title(key)]), best, (key) => { drafter = key; draw(); })));
    const kinds = promptKinds(record), chosen = kinds.includes(kind) ? kind : kinds[0];
    acceptance.draw(told([record.acceptance, chosen]), () => {
      const figure = kinds.length ? acceptanceFigure(record, chosen, host) : null;
      return figure && tuneFigure(figure, choice("Prompts", kinds.map((one) => [one, one]), chosen,
        (one) => { kind = one; draw(); }));
    });
    costs.draw(told(record.cost), () => { const figure = costFigure(record); return figure && tuneFigure(figure); });
    settings.draw(told(setting), () => (compared ? settingsTable(record, host) : null));
    for (const block of blocks) block.show(record, running);
    unread.hidden = !record.unread;
    writeText(unread, record.unread ? `${plural(record.unread, "line")} of the record could not be read.` : "");
    tell();
  }
  function tell() {
    const now = record.progress;
    progress.hidden = !running || !now;
    if (!now) return;
    bar.value = now.done;
    const left = now.seconds_left === null ? "" : `; ${time(now.seconds_left)} left`;
    writeText(doing, `${Math.round(now.done * 100)} %${left}. ${now.doing}`);
  }
  const soon = () => { if (!timer) timer = setTimeout(draw, running ? PAUSE : 0); };
  draw();
  return {
    feed(text) { record = reader(String(text)); tell(); soon(); },
    setState(state) { running = state === "running"; tell(); soon(); },
    outdate(differs) { other.hidden = !differs; },
    record: () => record,
    destroy() {
      clearTimeout(timer);
      ends.forEach((end) => end());
      root.remove();
    },
  };
}

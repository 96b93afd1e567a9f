// The answer of a tuning: one sentence in large type, why it is so, and the run that shows it.
/** @import { AnswerLine, TuneHost, TuningRecord } from "./types.d.ts" */
import { el } from "../base.js";
import { cellText, numberText } from "../cells.js";
import { plural } from "../words.js";
import { gainText } from "./heat.js";
import { numbersTable } from "./figure.js";
import { PLAIN, answeredSetting, besideTheBest, hardlyKnown, ranked, unsteady } from "./record.js";

const ROWS = 48;
const FAR = 0.15;   // share by which a run may differ from its prediction without a word

/** A sentence with names between backticks. */
const sentence = (text) => text.split("\x60").map((part, i) => (i % 2 ? el("code", { text: part })
  : document.createTextNode(part)));

const capital = (words) => words[0].toUpperCase() + words.slice(1);

/** What was measured, in a line. */
function measuredOn({ head }) {
  const { target, machine, prompts } = Object(head), told = [];
  if (target?.name) told.push(cellText(target.name));
  if (machine?.processor) told.push(`on ${cellText(machine.processor)}`);
  if (Number.isInteger(prompts?.sampled)) told.push(prompts.sampled < prompts.given
    ? `${prompts.sampled} of ${plural(prompts.given, "prompt")}` : plural(prompts.sampled, "prompt"));
  const left = [["empty", "without a text"], ["left_out", "that do not fit"]].filter(([name]) => prompts?.[name] > 0)
    .map(([name, words]) => `${prompts[name]} ${words}`);
  if (left.length) told.push(`left out: ${left.join(", ")}`);
  if (!told.length) return "";
  return head.recorded ? `Measured earlier: ${told.join(", ")}. Press Measure for your prompts on this machine.`
    : `Measured: ${told.join(", ")}.`;
}

/** Where running the answer gave another speed than predicted: how far the predictions may be off, in a line. */
function farOff(record) {
  const { checked, predicted } = answeredSetting(record) || {};
  if (!checked || !predicted || Math.abs(checked / predicted - 1) <= FAR) return "";
  return `Running it gave ${numberText(checked)} tokens a second where ${numberText(predicted)} were predicted: the `
    + "predictions in the tables may be as far off. Measure again while nothing else computes.";
}

/**
 * The way to the setting as other engines take it, or the promise of it.
 * @type {(record: TuningRecord, running: boolean, host: TuneHost) => HTMLElement | null}
 */
function takes({ answer }, running, host) {
  if (!answer?.why || answer.drafter === PLAIN) return null;
  const names = host.engines.map(([, name]) => name), last = names.pop();
  const all = names.length ? `${names.join(", ")} or ${last}` : last;
  if (running) return el("span", { text: `When this is done, take the setting to ${all}.` });
  const jump = () => document.getElementById("tune-export")?.scrollIntoView({ block: "start" });
  return el("button", { type: "button", class: "ln-button", text: `Take it to ${all}`, onclick: jump });
}

/**
 * @param {TuningRecord} record
 * @param {boolean} running
 * @param {TuneHost} host
 */
export function answerCard(record, running, host) {
  const { answer } = record;
  if (!answer) {
    if (!record.acceptance.length || running) return null;
    const lacks = [...new Set(record.acceptance.map((line) => line.lacks).filter(Boolean))].slice(0, 4);
    return el("div", { class: "tn-answer" }, el("p", { class: "tn-why",
      text: "This record holds no answer, for it tells no speed. Below is what it tells." }),
      ...lacks.map((text) => el("p", { class: "ln-quiet", text })));
  }
  const { why, preset_link: link } = answer, far = farOff(record), pays = answer.drafter !== PLAIN;
  const busy = unsteady(record), unclear = pays && Boolean(far || busy);
  return el("div", { class: "tn-answer", "data-pays": String(pays && !unclear) },
    el("h2", { class: "tn-sentence", id: "tune-answer" }, running ? "So far: " : null,
      unclear ? `${running ? "u" : "U"}nclear, the machine was busy. Perhaps: ` : null, ...sentence(answer.sentence)),
    far && el("p", { class: "tn-busy", text: far }),
    why && el("p", { class: "tn-why" }, why.cause && !unclear && el("strong", { text: `${capital(why.cause)}. ` }),
      ...sentence(why.sentence)),
    el("p", { class: "ln-quiet", text: `${measuredOn(record)}${running ? " It is still being measured." : ""}` }),
    busy && el("p", { class: "tn-busy", text: "The machine was busy with something else meanwhile: passes "
      + "over more rows were measured to cost less. Take all gains with caution, or measure again." }),
    el("p", { class: "tn-next" }, link && host.watch(link, "Watch this run, step by step"),
      takes(record, running, host)));
}

/**
 * The settings that were tried at one text at a time, the best first, and then those after fewer prompts.
 * @type {(record: TuningRecord, host: TuneHost) => HTMLElement}
 */
export function settingsTable({ setting }, host) {
  const fewest = Math.min(...setting.map((one) => one.texts));
  const few = hardlyKnown(setting);
  const rows = ranked(besideTheBest(setting)).filter((one) => one.texts === fewest).slice(0, ROWS);
  return el("details", { class: "tn-settings" },
    el("summary", { text: "The settings that were tried, the best first; those after fewer prompts follow" }),
    numbersTable({ columns: ["drafter", "tokens", "rule", "output", "times plain", "how", "prompts", ""],
      rows: rows.map((one) => [host.title(one.drafter), one.size, one.verifier,
        one.lossless === null ? "–" : one.lossless ? "lossless" : "lossy",
        `${few(one) ? "~" : ""}${gainText(one.ratio)}`, one.checked === null ? "predicted" : "checked by running",
        one.prompts, host.watch(one, "Watch") || ""]) }, "The settings that were tried"));
}

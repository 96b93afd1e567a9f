// "Conversation and own models": a conversation with a chat model, strings that end a text, a target and a draft of the
// visitor's. The value is JSON from the server: {token, loaded, missing, converses, chat, system, turns, stop, task,
// share, problem, inspected, n}.
/** @import { Component } from "./types.d.ts" */
import { setConversation } from "./agreement.js";
import { onModels, setOwnPair } from "./choices.js";
import { converses } from "./conversation.js";
import { hearNewest } from "./newest.js";
import { el, writeText } from "../../viz/web/base.js";

// in the browser, for this tab alone: names to the server what it keeps for the visitor
const KEPT = "draftscope-own";
function keep(token) {
  try {
    if (token) sessionStorage.setItem(KEPT, token); else sessionStorage.removeItem(KEPT);
  } catch { /* the browser keeps nothing */ }
}
/**
 * What the server kept for this tab before the page was loaded anew, "" for nothing.
 * @type {() => string}
 */
export function keptBefore() {
  try { return sessionStorage.getItem(KEPT) || ""; } catch { return ""; }
}

/**
 * offer: whether models may be brought, and which; none named: all.
 * @type {(c: Component, offer: {bring: boolean, allowed: string[]}) => void}
 */
export function ownModels(c, offer) {
  const input = (id, placeholder) => el("input",
    { id, type: "text", placeholder, autocomplete: "off", spellcheck: "false", maxlength: 300 });
  const field = (label, control) => el("div", { class: "pg-own-field" }, el("label", { for: control.id, text: label }),
    control);
  const target = input("own-target", "owner/name, or a folder"), draft = input("own-draft", "may be empty");
  const load = el("button",
    { type: "button", id: "own-load", class: "pg-tool pg-go", text: "Load",
      onclick: () => c.trigger("bring", { target: target.value.trim(), draft: draft.value.trim() }) });
  const unload = el("button",
    { type: "button", id: "own-unload", class: "pg-tool", text: "Put away", onclick: () => ask("put_away") });
  const bar = el("progress", { max: 1, value: 0, "aria-label": "Loading" }), doing = el("span", {});
  const progress = el("p", { class: "pg-own-progress", role: "status", hidden: true }, bar, doing);
  const problem = el("p", { class: "pg-alarm", role: "alert" });
  const facts = el("p", { class: "pg-help", id: "own-facts" });
  const seen = el("ul", { class: "pg-help" });
  const inspected = el("details", { id: "own-inspected", hidden: true },
    el("summary", { text: "What its files say" }), seen);
  const allowed = el("p",
    { class: "pg-help", text: offer.allowed.length ? `The host allows: ${offer.allowed.join(", ")}.`
      : "Only safetensors are opened, and no code of a model runs." });
  const chat = el("input", { type: "checkbox", id: "own-chat", onchange: tell });
  const chatLine = el("label", { class: "pg-own-chat", for: "own-chat" }, chat,
    " The prompt is my turn in a conversation");
  const turns = el("ol", { class: "pg-own-turns", "aria-label": "The conversation so far" });
  const fresh = el("button",
    { type: "button", id: "own-fresh", class: "pg-tool", text: "New conversation", onclick: () => ask("fresh") });
  const sampling = el("button",
    { type: "button", id: "own-sampling", class: "pg-tool", text: "Sample as the model wants",
      onclick: () => c.trigger("own_sampling") });
  const stop = el("textarea",
    { id: "own-stop", rows: 2, maxlength: 2000,
      placeholder: "one a line; \\n is a line break, \\t a tab, \\\\ a backslash", onchange: tell });
  const system = el("textarea",
    { id: "own-system", rows: 2, maxlength: 1000, placeholder: "may be empty: Answer in one sentence.",
      onchange: tell });
  const again = el("p",
    { class: "pg-help",
      text: "Run answers your last turn again as long as the prompt is unchanged; another prompt is the next turn." });
  const said = el("div", { class: "pg-own-said" }, field("System turn, before all others", system), turns, again,
    fresh);
  const talk = el("div", { class: "pg-own-talk" }, chatLine, said);
  const bring = el("div", { class: "pg-own-bring" }, el("strong", { text: "Own models" }), allowed,
    field("Target", target), field("Draft", draft), el("div", { class: "pg-own-go" }, load, unload), progress);
  c.element.append(talk, field("Strings that end the text", stop), problem, bring, facts, inspected,
    sampling);
  bring.hidden = !offer.bring;

  const strings = () => stop.value.split("\n").filter(Boolean);
  function tell() { ask("adjust", { chat: chat.checked, system: system.value, stop: strings() }); }

  function turnLine({ role, content }) {
    return el("li", { class: `pg-own-turn pg-own-${role}` }, el("strong", { text: role === "user" ? "You" : "Model" }),
      el("span", { text: content }));
  }

  function show() {
    const pair = now.loaded;
    setOwnPair(now);
    setConversation(now);
    progress.hidden = !now.task;
    load.disabled = Boolean(now.task);
    bar.value = now.share;
    writeText(doing, now.task ? ` ${now.task}` : "");
    writeText(problem, now.problem);
    facts.hidden = sampling.hidden = unload.hidden = !pair;
    inspected.hidden = !now.inspected.length;
    seen.replaceChildren(...now.inspected.map((text) => el("li", { text })));
    if (pair) writeText(facts, `${pair.target}: ` +
      `${pair.served ? `behind ${pair.served}` : `${pair.parameters.toLocaleString("en")} parameters`}, a context of ` +
      `${pair.context.toLocaleString("en")} tokens` +
      `${pair.draft ? `; ${pair.draft} drafts` : "; no draft model"}. Watch and Compare use it now.`);
    talk.hidden = !now.converses && !converses(family);
    chat.checked = now.chat;
    chatLine.hidden = converses(family);
    said.hidden = !now.chat && !converses(family);
    if (document.activeElement !== system) system.value = now.system;
    turns.replaceChildren(...now.turns.map(turnLine));
    fresh.hidden = again.hidden = !now.turns.length;
  }
  let family = "", now = JSON.parse(c.props.value);
  const ask = hearNewest(c, (value) => { now = value; keep(now.token); show(); }, "own-models");
  onModels("watch", (name) => { family = name; show(); });
}

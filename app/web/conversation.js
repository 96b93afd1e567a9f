// The visitor's conversation with a chat model, and the strings that end a text, as the server keeps them.
/** @import { Conversation, Tab } from "./types.d.ts" */
/** @import { Turn } from "../../viz/web/types.d.ts" */
import { offer } from "./offer.js";

let talk = { chat: false, system: "", turns: [], stop: [] };

/** @type {(conversation: Conversation) => void} */
export const takeConversation = ({ chat, system, turns, stop }) => { talk = { chat, system, turns, stop }; };
/**
 * The strings that end a text.
 * @type {() => string[]}
 */
export const stopStrings = () => talk.stop;

/**
 * Whether a prompt for this family of models is a turn that it answers, and not the beginning of a text.
 * @type {(family?: string) => boolean}
 */
export const converses = (family) => offer.chat.includes(family || "");
/**
 * Whether something was said or set before the prompt, which no address carries.
 * @type {(family?: string) => boolean}
 */
export const spoken = (family) => (converses(family) ? Boolean(talk.system || talk.turns.length) : talk.chat);

/**
 * The turns that a run with this prompt answers, or null outside a conversation. The last turn, said again unchanged,
 * is answered anew: see Choice.asking in app/own.py. Compare has no conversation, but asks families that converse.
 * @type {(room: Tab, prompt: string, family?: string) => Turn[] | null}
 */
export function asking(room, prompt, family = "") {
  if (room !== "watch") return converses(family) ? [{ role: "user", content: prompt }] : null;
  if (!talk.chat && !converses(family)) return null;
  const said = [...(talk.system ? [{ role: "system", content: talk.system }] : []), ...talk.turns];
  const before = said.at(-2);
  if (before && before.role === "user" && before.content === prompt) return said.slice(0, -1);
  return [...said, { role: "user", content: prompt }];
}

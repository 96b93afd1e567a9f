// The visitor's conversation with a chat model, and the strings that end a text, as the server keeps them.
/** @import { Conversation, Tab } from "./types.d.ts" */
/** @import { Turn } from "../../viz/web/types.d.ts" */

let talk = { chat: false, system: "", turns: [], stop: [] };

/** @type {(conversation: Conversation) => void} */
export const takeConversation = ({ chat, system, turns, stop }) => { talk = { chat, system, turns, stop }; };
/**
 * The strings that end a text.
 * @type {() => string[]}
 */
export const stopStrings = () => talk.stop;

/**
 * The turns that a run with this prompt answers, or null outside a conversation. The last turn, said again unchanged,
 * is answered anew: see Choice.asking in app/own.py.
 * @type {(room: Tab, prompt: string) => Turn[] | null}
 */
export function asking(room, prompt) {
  if (room !== "watch" || !talk.chat) return null;
  const said = [...(talk.system ? [{ role: "system", content: talk.system }] : []), ...talk.turns];
  const before = said.at(-2);
  if (before && before.role === "user" && before.content === prompt) return said.slice(0, -1);
  return [...said, { role: "user", content: prompt }];
}

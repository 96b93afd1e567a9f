// Checks whether the server still answers while a run is going. A server that was killed sends nothing, and a broken
// stream looks like a slow run. When the server is back, the page is reloaded: gradio does so for a page that was
// receiving something, and this script also does so for a run that was paused.
/** @import { Tab } from "./types.d.ts" */
import { happen, stateOf } from "./rooms.js";

const EVERY = 2000, MOST = 4000;   // ms between two questions, and for one answer
const GONE = "The server cannot be reached, so this run is lost. The page opens anew when the server is back.";
/** @type {Tab[]} */
const ROOMS = ["watch", "compare"];
let failures = 0, gone = false;

const underWay = (name) => ["running", "paused"].includes(stateOf(name));

async function answers() {
  try {
    // oxlint-disable-next-line no-restricted-globals -- nothing of a trace crosses: only whether anybody answers
    await fetch(new URL("health", document.baseURI), { cache: "no-store", signal: AbortSignal.timeout(MOST) });
    return true;
  } catch {
    return false;
  }
}

async function look() {
  if (!gone && !ROOMS.some(underWay)) {
    failures = 0;
    return;
  }
  failures = (await answers()) ? 0 : failures + 1;
  const lost = ROOMS.filter(underWay);
  if (failures > 1 && lost.length) {
    gone = true;
    lost.forEach((name) => happen(name, { kind: "failed", message: GONE }));
  } else if (gone && !failures) {
    location.reload();
  }
}

/**
 * Look now, and again and again.
 * @type {() => Promise<void>}
 */
export async function watchServer() {
  await look();
  setTimeout(watchServer, EVERY);
}

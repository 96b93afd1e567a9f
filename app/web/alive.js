// Whether the server still answers while a run is going. A server that was killed sends no word, and a stream that
// broke off looks like a run that takes its time.
(function () {
  "use strict";
  const P = (globalThis.DraftscopePage = globalThis.DraftscopePage || {});
  const EVERY = 2000, MOST = 4000;   // ms between two questions, and for one answer
  const GONE = "The server cannot be reached, so this run is lost. The page opens anew when the server is back.";
  const BACK = "The server is back. Press Run to begin again.";
  const ROOMS = ["watch", "compare", "whatif"];
  let failures = 0, gone = false, told = [];   // told: the rooms whose run is lost

  const underWay = (name) => ["running", "paused"].includes(P.stateOf(name));

  async function answers() {
    try {
      // oxlint-disable-next-line no-restricted-globals -- nothing of a trace crosses: only whether anybody answers
      await fetch(new URL("health", document.baseURI), { cache: "no-store", signal: AbortSignal.timeout(MOST) });
      return true;
    } catch {
      return false;
    }
  }

  const say = (names, message) => names.forEach((name) => P.show(name, { state: "error", message }));

  async function look() {
    if (!gone && !ROOMS.some(underWay)) {
      failures = 0;
      return;
    }
    failures = (await answers()) ? 0 : failures + 1;
    const lost = ROOMS.filter(underWay);
    if (failures > 1 && lost.length) {
      told = [...new Set([...told, ...lost])];
      gone = true;
      say(lost, GONE);
    } else if (gone && !failures) {
      gone = false;
      say(told.filter((name) => P.stateOf(name) === "error"), BACK);
      told = [];
    }
  }

  (async function forever() {
    await look();
    setTimeout(forever, EVERY);
  })();
})();

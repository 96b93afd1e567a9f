// Whether the server still answers while a run is going. A server that was killed sends no word, and a stream that
// broke off looks like a run that takes its time. When the server is back, the page is opened anew: gradio does so
// where it was hearing something, and here it is done for a run that was paused, too.
(function () {
  "use strict";
  const P = (globalThis.DraftscopePage = globalThis.DraftscopePage || {});
  const EVERY = 2000, MOST = 4000;   // ms between two questions, and for one answer
  const GONE = "The server cannot be reached, so this run is lost. The page opens anew when the server is back.";
  const ROOMS = ["watch", "compare", "whatif"];
  let failures = 0, gone = false;

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

  async function look() {
    if (!gone && !ROOMS.some(underWay)) {
      failures = 0;
      return;
    }
    failures = (await answers()) ? 0 : failures + 1;
    const lost = ROOMS.filter(underWay);
    if (failures > 1 && lost.length) {
      gone = true;
      lost.forEach((name) => P.show(name, { state: "error", message: GONE }));
    } else if (gone && !failures) {
      location.reload();
    }
  }

  (async function forever() {
    await look();
    setTimeout(forever, EVERY);
  })();
})();

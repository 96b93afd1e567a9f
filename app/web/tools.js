// Saving and opening traces and races. Files are read and written by the browser.
(function () {
  "use strict";
  const P = (globalThis.DraftscopePage = globalThis.DraftscopePage || {});

  P.save = (text, name, type) => Draftscope.saveBlob(new Blob([text], { type }), name);

  const parsed = (line) => { try { return JSON.parse(line) || {}; } catch { return {}; } };

  /** The beginning of a file's name, from what ran. */
  P.fileStem = function (trace) {
    const { lane, drafter } = parsed(trace.slice(0, trace.indexOf("\n")));
    const name = lane !== undefined ? "race" : String((drafter && drafter.key) || "trace");
    return `draftscope-${name.replace(/[^a-z0-9_-]/gi, "")}`;
  };
  P.fileName = (trace, ending) => `${P.fileStem(trace)}.${ending}`;

  /** Whether a trace, or every lane of a race, has come to its summary. */
  P.finished = function (trace) {
    const lines = trace.trimEnd().split("\n"), last = parsed(lines.at(-1));
    if (last.kind !== "summary" || last.lane === undefined) return last.kind === "summary";
    const kinds = lines.map((line) => parsed(line).kind), count = (kind) => kinds.filter((one) => one === kind).length;
    return count("run") === count("summary");
  };

  const WORDS = {
    watch: { thing: "trace", wait: "The run must come to its end, or be stopped, before it can be saved.", back: "Back to my run" },
    compare: { thing: "race", wait: "The race must come to its end, or be stopped, before it can be saved.", back: "Back to my race" },
  };
  P.toolButton = (id, text, onclick) => Draftscope.el("button", { type: "button", class: "pg-tool", id, text, onclick });

  /**
   * Buttons that save and open a room's trace, as elements for its row of tools. c: the object that gr.HTML hands over,
   * with an event "opened"; say(words): reports the result; exported(text): the server's {page} or {error}.
   */
  P.fileTools = function (c, room, say, exported) {
    const { thing, wait, back } = WORDS[room], before = room === "watch" ? "" : "race-";
    const file = Draftscope.el("input", { type: "file", accept: ".ndjson,.jsonl,application/x-ndjson", class: "pg-file",
      "aria-label": `A ${thing} file to open`, id: `open-${thing}`, tabindex: "-1" });

    const current = (done) => () => {
      const text = P.trace(room);
      if (text && P.finished(text)) done(text);
      else say(wait);
    };
    const save = current((text) => {
      P.save(text, P.fileName(text, "ndjson"), "application/x-ndjson");
      say("Saved.");
    });
    const savePage = current(async (text) => {
      say("Making the page…");
      try {
        const answer = await exported(text);
        if (answer.page) P.save(answer.page, P.fileName(text, "html"), "text/html");
        say(answer.page ? "Saved: one file, it replays without this server." : answer.error);
      } catch { say("The page could not be made; try again."); }
    });

    file.addEventListener("change", async () => {
      const chosen = file.files[0];
      file.value = "";
      if (!chosen) return;
      if (chosen.size > c.props.limit) {
        say(`That file is larger than ${Math.round(c.props.limit / 1e6)} MB.`);
        return;
      }
      say("");
      c.trigger("opened", { text: await chosen.text() });
    });

    const mine = P.toolButton(`${before}back`, back, () => c.trigger("opened", { text: P.putAway(room) }));
    P.follow(room, () => { mine.hidden = !P.putAway(room); });
    return [P.toolButton(`save-${thing}`, `Save ${thing}`, save), P.toolButton(`${before}save-page`, "Save as a page", savePage),
      P.toolButton(`${before}open`, `Open a ${thing}`, () => file.click()), file, mine];
  };
})();

// Saving and opening traces, and the link to this page. Files are read and written by the browser.
(function () {
  "use strict";
  const P = (globalThis.DraftscopePage = globalThis.DraftscopePage || {});

  function save(text, name, type) {
    const url = URL.createObjectURL(new Blob([text], { type }));
    const link = Draftscope.el("a", { href: url, download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
  }

  /** A name for a file, from what ran. */
  function fileName(trace, ending) {
    let drafter = "trace";
    try { drafter = JSON.parse(trace.slice(0, trace.indexOf("\n"))).drafter.key; } catch { /* not a run */ }
    return `draftscope-${drafter.replace(/[^a-z0-9_-]/gi, "")}.${ending}`;
  }

  const finished = (trace) => trace.trimEnd().split("\n").pop().startsWith('{"kind":"summary"')
    || /"kind": ?"summary"/.test(trace.slice(-20000));

  P.tools = function (c) {
    P.examples = c.props.examples;
    const { el } = Draftscope;
    const say = el("span", { class: "pg-said", role: "status" });
    const file = el("input", { type: "file", accept: ".ndjson,.jsonl,application/x-ndjson", class: "pg-file",
      "aria-label": "A trace file to open", id: "open-trace", tabindex: "-1" });
    const button = (id, text, onclick) => el("button", { type: "button", class: "pg-tool", id, text, onclick });

    const current = (done) => {
      const trace = P.trace("watch");
      if (trace && finished(trace)) done(trace);
      else say.textContent = "The run must come to its end, or be stopped, before it can be saved.";
    };

    c.element.append(
      button("save-trace", "Save trace", () => current((trace) => {
        save(trace, fileName(trace, "ndjson"), "application/x-ndjson");
        say.textContent = "Saved.";
      })),
      button("save-page", "Save as a page", () => current(async (trace) => {
        say.textContent = "Making the page…";
        try {
          const answer = await c.server.export_page(trace);
          if (answer.page) save(answer.page, fileName(trace, "html"), "text/html");
          say.textContent = answer.page ? "Saved: one file, it replays without this server." : answer.error;
        } catch { say.textContent = "The page could not be made; try again."; }
      })),
      button("open", "Open a trace", () => file.click()),
      file,
      button("copy-link", "Copy link", () => { P.linked = (words) => { say.textContent = words; }; c.trigger("link"); }),
      say,
    );

    file.addEventListener("change", async () => {
      const chosen = file.files[0];
      file.value = "";
      if (!chosen) return;
      if (chosen.size > c.props.limit) {
        say.textContent = `That file is larger than ${Math.round(c.props.limit / 1e6)} MB.`;
        return;
      }
      say.textContent = "";
      c.trigger("opened", { text: await chosen.text() });
    });
  };

  const SHORT = ["t", "k", "p", "seed", "n"];

  /** The address that brings another visitor to these controls, put on the clipboard. */
  P.link = async function (values) {
    const [preset, prompt, drafter, options, verifier, ...numbers] = values;
    const query = new URLSearchParams();
    if (preset) query.set("preset", preset);
    if (prompt !== (P.examples || {})[preset]) query.set("prompt", prompt);
    query.set("drafter", drafter);
    if (verifier) query.set("verifier", verifier);
    SHORT.forEach((name, i) => { if (numbers[i] !== null && numbers[i] !== undefined) query.set(name, numbers[i]); });
    const chosen = JSON.parse(options);
    if (chosen.drafter === drafter) for (const [name, value] of Object.entries(chosen.values)) query.set("o." + name, value);
    const link = `${location.origin}${location.pathname}?${query}`;
    try {
      history.replaceState(null, "", link);
      await navigator.clipboard.writeText(link);
      P.linked("Link copied.");
    } catch { P.linked("The link stands in the address bar."); }
  };
})();

// The rows of tools under the pictures of Watch and Compare: files, and the link that brings another visitor here.
(function () {
  "use strict";
  const P = (globalThis.DraftscopePage = globalThis.DraftscopePage || {});
  const says = {};   // by room: what tells of its link
  P.sayOfLink = (room, words) => says[room](words);

  function row(c, room, linkId, exported) {
    const line = Draftscope.el("span", { class: "pg-said", role: "status" }), say = (words) => { line.textContent = words; };
    says[room] = say;
    const slide = P.slide(c, room);
    c.element.append(...P.fileTools(c, room, say, exported), P.toolButton(linkId, "Copy link", () => c.trigger("link")), slide.button, line, slide.panel);
  }

  P.tools = function (c) {
    row(c, "watch", "copy-link", (text) => c.server.export_page(text));
    P.onMove("watch", (query) => c.trigger("moved", { query }));
    if (P.keptBefore()) c.trigger("returned", { token: P.keptBefore() });
  };

  /** Also tells the server when the tab comes on the screen, and its address; the server sends the finished race. */
  P.raceTools = function (c) {
    row(c, "compare", "race-link", (text) => c.server.export_race(text));
    P.onMove("compare", (query) => c.trigger("moved", { query }));
    const seen = new ResizeObserver(() => {
      if (!c.element.clientWidth) return;      // another tab is open
      seen.disconnect();
      if (!P.trace("compare")) c.trigger("seen", { query: Object.fromEntries(new URLSearchParams(location.search)) });
    });
    seen.observe(c.element);
  };
})();

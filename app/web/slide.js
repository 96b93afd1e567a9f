// A slide of a room's picture: the button in its row of tools, and the controls that it opens.
(function () {
  "use strict";
  const P = (globalThis.DraftscopePage = globalThis.DraftscopePage || {});
  const LOOKS = { button: "pg-tool", select: "pg-tool", quiet: "pg-said" };

  /** The line below the picture of a run. A race's picture already says what it shows. */
  function heading(room) {
    const { model } = P.view(room), { drafter, verifier, sampling } = (model && model.run) || {};
    if (!drafter) return "";
    return `${Draftscope.title(drafter.title || drafter.key)}, rule ${Draftscope.title(verifier.title || verifier.key)} (${Draftscope.exactness(verifier)}), temperature ${sampling.temperature}`;
  }

  /** {button, panel} for a row of tools. c: the object that gr.HTML hands over. */
  P.slide = function (c, room) {
    const panel = Draftscope.el("div", { class: "pg-slide", id: `${room}-slide-tools`, hidden: true });
    let tools = null;
    const button = Draftscope.el("button", { type: "button", class: "pg-tool", id: `${room}-slide`, text: "Save a picture", "aria-expanded": "false", "aria-controls": panel.id,
      title: "The picture of this moment as SVG or PNG, light or dark.", onclick() {
        if (!tools) {
          tools = Draftscope.slideTools(c.element.closest(".pg-stage"), { name: () => P.fileStem(P.trace(room)), heading: () => heading(room), looks: LOOKS });
          panel.append(tools.element);
        }
        panel.hidden = !panel.hidden;
        button.setAttribute("aria-expanded", String(!panel.hidden));
        tools.look();
      } });
    return { button, panel };
  };
})();

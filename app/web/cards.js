// The examples as cards: one of a set of radio buttons each. The value is the chosen example's name.
(function () {
  "use strict";
  const P = (globalThis.DraftscopePage = globalThis.DraftscopePage || {});
  const PAUSE = 250;   // ms: who walks through the cards with the arrow keys does not ask for each

  /** c.props.cards: [{name, title, family, look_for}]. */
  P.cards = function (c) {
    const { el } = Draftscope;
    const group = Draftscope.freshId("cards"), radios = new Map();
    let timer = 0;
    function choose(name) {
      reveal(radios.get(name).parentElement);
      clearTimeout(timer);
      timer = setTimeout(() => { c.props.value = name; c.trigger("chosen"); }, PAUSE);
    }
    const cardOf = ({ name, title, family, look_for: lookFor }) => {
      const radio = el("input", { type: "radio", name: group, value: name, onchange: () => choose(name) });
      radios.set(name, radio);
      return el("label", { class: "pg-card", "data-card": name }, radio,
        el("span", { class: "pg-card-family", text: family }), el("strong", { class: "pg-card-title", text: title }),
        el("span", { class: "pg-card-look" }, el("em", { text: "Look for: " }), lookFor));
    };
    const strip = el("div", { class: "pg-card-strip" }, ...c.props.cards.map(cardOf));
    c.element.append(el("fieldset", { class: "pg-cards" }, el("legend", { class: "pg-hidden", text: "Examples" }), strip));

    /** Into sight within the strip; the page stays where it is. */
    function reveal(card) {
      strip.scrollLeft = Draftscope.clamp(strip.scrollLeft, card.offsetLeft + card.offsetWidth - strip.clientWidth, card.offsetLeft);
    }

    function show() {
      const radio = radios.get(c.props.value);
      for (const one of radios.values()) one.checked = one === radio;
      if (radio) reveal(radio.parentElement);
    }
    c.watch("value", show);
    show();
  };
})();

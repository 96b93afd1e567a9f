// The tour's card, and the light around the thing that it explains. The light is only paint: clicks go through it.
import { placeCard, scrollFor } from "./tour-place.js";
import { coalesce, el, fingers, freshId, setAttributes, stillWanted } from "../../viz/web/base.js";

/**
 * hooks: back, next, there, close. Returns {element, card, shown, tell, praise, show, point, hide}.
 * @param {any} words
 * @param {Record<string, () => void>} hooks
 */
export function tourCard(words, hooks) {
  const ids = { title: freshId("tour"), text: freshId("tour") };
  const where = el("p", { class: "pg-tour-where" }), title = el("h2", { id: ids.title }), text = el("p", {});
  const ask = el("p", { class: "pg-tour-ask" });
  const button = (name, label) => el("button",
    { type: "button", class: "pg-tool", "data-tour": name, text: label, onclick: hooks[name] });
  const back = button("back", "Back"), next = button("next", "Next"), there = button("there", "Show me where");
  const close = button("close", "");
  const card = el("div",
    { class: "pg-tour", role: "dialog", "aria-modal": "false", "aria-labelledby": ids.title,
      "aria-describedby": ids.text, tabindex: -1 },
    el("div", { id: ids.text, "aria-live": "polite" }, where, title, text, ask),
    el("div", { class: "pg-tour-buttons" }, close, there, back, next));
  const light = el("div", { class: "pg-spot", "aria-hidden": "true" });
  const element = el("div", { class: "pg-tour-layer", hidden: true }, light, card);
  let spot = null, sides = ["below"], free = null, pointed = null;

  const room = () => ({ width: document.documentElement.clientWidth, height: innerHeight });
  const size = () => ({ width: card.offsetWidth, height: card.offsetHeight });
  const visible = (what) => (what && what.getClientRects().length ? what.getBoundingClientRect() : null);

  function place() {
    const lit = visible(spot), bright = visible(pointed) || lit, { width, height } = room();
    light.hidden = !bright;
    if (bright) {
      const edge = 6;
      Object.assign(light.style, { left: `${bright.left - edge}px`, top: `${bright.top - edge}px`,
        width: `${bright.width + 2 * edge}px`, height: `${bright.height + 2 * edge}px` });
    }
    const at = placeCard(lit || { left: 0, right: 0, top: height, bottom: height }, size(), { width, height }, lit
      ? sides : ["above"], visible(free));
    Object.assign(card.style, { left: `${at.left}px`, top: `${at.top}px` });
  }

  const redraw = coalesce(() => { if (!element.hidden) place(); });
  addEventListener("scroll", redraw, { capture: true, passive: true });
  addEventListener("resize", redraw);
  addEventListener("animationend", redraw, true);      // what slides in is where it stays
  const watcher = new ResizeObserver(redraw);
  watcher.observe(document.body);
  watcher.observe(card);

  return {
    element, card,
    get shown() { return !element.hidden; },
    /** told: {title, text, ask}; number: the stop's, or null after the last one. */
    tell(told, number) {
      where.textContent = number === null ? "" : `Stop ${number} of ${words.stops.length}`;
      title.textContent = told.title;
      text.textContent = told.text;
      ask.textContent = (fingers() && told.fingers) || told.ask || "";
      back.hidden = number === 1;
      next.textContent = number === words.stops.length ? "Done" : "Next";
      next.hidden = there.hidden = number === null;
      close.textContent = number === null ? "Close" : "End tour";
      setAttributes(card, { "data-done": null });
      element.hidden = false;
    },
    praise() {
      setAttributes(card, { "data-done": true });
      pointed = null;
      redraw();
      if (where.textContent !== words.done) where.textContent = words.done;
    },
    /** Light an element, or nothing, and bring it into view with the card and, if there is room, with `besides`. */
    show(lighted, preferred, besides = null) {
      if (spot) watcher.unobserve(spot);
      spot = lighted; sides = preferred; free = besides; pointed = null;
      if (spot) watcher.observe(spot);
      const lit = visible(spot), by = lit ? scrollFor(lit, size(), room(), sides, visible(free)) : 0;
      if (by) scrollBy({ top: by, behavior: stillWanted() ? "instant" : "smooth" });
      redraw.now();
    },
    /** Move the light to one thing within the lit element. */
    point(thing) { pointed = thing; redraw.now(); },
    hide() { element.hidden = true; },
  };
}

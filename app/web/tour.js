// A tour of the Watch page: one thing is lit at a time, the rest is dimmed, and everything stays usable. It says
// when the reader has done the stop's task, and moves on with its own buttons. It begins only when the reader asks.
import { viewOf } from "./rooms.js";
import { tourCard } from "./tour-card.js";
import { findFirst, lookOut, TOUR_STOPS } from "./tour-stops.js";
import { el, find, targetOf } from "../../viz/web/base.js";

const SEEN = "draftscope-tour";

const memory = {
  get visited() { try { return localStorage.getItem(SEEN) !== null; } catch { return false; } },
  visit() { try { localStorage.setItem(SEEN, "1"); } catch { /* private windows forget */ } },
};

/**
 * The button that begins the tour, with an invitation beside it on a first visit.
 * @type {(words: any) => HTMLElement}
 */
export function tourStart(words) {
  const tour = makeTour(words, () => begin.focus());
  const begin = el("button",
    { type: "button", class: "pg-tool", id: "take-tour", text: words.take, onclick() { welcome(); tour.begin(); } });
  const invitation = memory.visited ? null : el("p", { class: "pg-invite" }, el("span", { text: words.invitation }),
    el("button", { type: "button", id: "no-tour", text: words.decline, onclick() { begin.focus(); welcome(); } }));
  function welcome() {
    memory.visit();
    if (invitation) invitation.remove();
  }
  return el("div", { class: "pg-tour-start" }, begin, invitation, tour.element);
}

/** words: {stops: [{name, title, text, ask}], farewell, done}. onEnd: called if it ends with focus in the card. */
function makeTour(words, onEnd) {
  let at = 0, stopLooking = () => {};
  const stop = () => TOUR_STOPS[words.stops[at].name];
  const view = tourCard(words, { back: () => go(at - 1), next: () => go(at + 1), there, close: end });

  function there() {
    const asked = findFirst(stop().ask);
    if (!asked) return;                                // before the first run there may be nothing to choose
    asked.focus();
    view.point(asked);
  }

  function begin() {
    find("#rooms [role=tab][data-tab-id='watch']").click();
    go(0);
    view.card.focus({ preventScroll: true });
  }

  function leave() {
    stopLooking();
    stopLooking = () => {};
  }

  function end() {
    leave();
    const inside = view.card.contains(document.activeElement);
    view.hide();
    if (inside) onEnd();
  }

  function go(to) {
    leave();
    at = to;
    const inside = view.card.contains(document.activeElement);
    if (at >= words.stops.length) {
      view.tell(words.farewell, null);
      view.show(null, []);
    } else {
      const picture = viewOf("watch");
      if (picture) stop().prepare(picture);
      view.tell(words.stops[at], at + 1);
      view.show(document.querySelector(stop().spot), stop().sides,
        stop().free ? document.querySelector(stop().free) : null);
      stopLooking = lookOut(stop(), view.praise);
    }
    // its button has gone
    if (inside && !view.card.contains(document.activeElement)) view.card.focus({ preventScroll: true });
  }

  /** Escape ends the tour, unless a list or an explanation is open that it should close first. */
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !view.shown) return;
    if (targetOf(event)?.closest("[aria-expanded='true']") || document.querySelector(".ds-tip:not([hidden])")) return;
    end();
  }, true);

  return { element: view.element, begin };
}

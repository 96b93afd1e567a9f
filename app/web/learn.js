// The Learn tab: the list of lessons or the open one, its address, and the answers that the browser remembers.
/** @import { Component } from "./types.d.ts" */
import { onMove, showing } from "./history.js";
import { liveRun, relay } from "./lesson-run.js";
import { saveText } from "./tools.js";
import { el, find, targetOf, whenShown, whenThere } from "../../viz/web/base.js";
import { mountLesson } from "../../viz/web/learn/lesson.js";
import { mountQuiz } from "../../viz/web/learn/quiz.js";
import { mountShelf } from "../../viz/web/learn/shelf.js";

const ROOM = "learn", KEPT = "draftscope-learn";

const kept = () => { try { return JSON.parse(localStorage.getItem(KEPT)) || {}; } catch { return {}; } };
const keep = (name,
  record) => { try { localStorage.setItem(KEPT, JSON.stringify({ ...kept(), [name]: record }));
  } catch { /* a browser that keeps nothing */ } };
const asked = () => new URLSearchParams(location.search);

/** The address of a lesson, of a screen of it, of that screen's figure alone (figure: "alone"), or of the list. */
function addressOf(lesson, screen, seed, figure) {
  const query = new URLSearchParams({ tab: ROOM });
  if (asked().has("__theme")) query.set("__theme", asked().get("__theme"));
  for (const [key, value] of Object.entries({ lesson, screen, figure, seed })) if (value) query.set(key, value);
  return `${location.pathname}?${query}`;
}
function href(to) {
  const [kind, name] = [to.slice(0, to.indexOf(":")), to.slice(to.indexOf(":") + 1)];
  if (kind === "https") return to;
  return { lesson: addressOf(name), method: "?tab=methods", watch: `?preset=${encodeURIComponent(name)}`,
    compare: `?tab=compare&preset=${encodeURIComponent(name)}` }[kind] || null;
}

/**
 * c.props.shelf: the contents of the list; still: whether nothing can be run or saved here.
 * @type {(c: Component) => void}
 */
export function learn(c) {
  const place = el("div"), top = el("p", { class: "pg-learn-top" });
  const told = el("p", { class: "pg-alarm", role: "alert" });
  c.element.append(top, told, place);
  let open = null, wanted = "";
  const tab = c.element.closest(".tabitem");
  const back = el("a", { class: "pg-learn-back", text: "‹ All lessons", href: addressOf() , "data-to": "shelf:" });
  const traces = new Map();
  const trace = (name) => {
    if (!traces.has(name)) traces.set(name, c.server.learn_trace(name)
      .then((text) => text || Promise.reject(new Error(name))).catch((error) => {
        traces.delete(name);
        throw error;
      }));
    return traces.get(name);
  };

  function clear() {
    if (open) open.destroy();
    open = relay.view = null;
    top.replaceChildren();
    tab.removeAttribute("data-lesson");
    told.textContent = "";
  }
  function shelf() {
    clear();
    wanted = "";
    showing(ROOM, {});
    open = mountShelf(place, c.props.shelf, { href, progress: (name) => kept()[name] || {} });
  }
  const saver = (name) => el("button",
    { type: "button", class: "ln-button", text: "Save as a file",
      title: "One file that shows this lesson without a server.", async onclick() {
        let answer;
        try { answer = await c.server.learn_page(name); } catch {
          answer = { error: "The lesson could not be fetched; try again in a moment." };
        }
        if (answer.page) saveText(answer.page, `draftscope-${name}.html`, "text/html");
        else told.textContent = answer.error;
      } });

  function here(query) {
    showing(ROOM, query);
    history.replaceState(null, "", addressOf(query.lesson, query.screen, query.seed, query.figure));
  }
  async function lesson(name, screen, seed, figure) {
    if (open && wanted === name && open.go && screen) { open.go(screen, Boolean(figure)); return; }
    clear();
    wanted = name;
    showing(ROOM, { lesson: name, screen, figure, seed });
    top.append(back);
    tab.setAttribute("data-lesson", name);
    place.replaceChildren(el("p", { class: "pg-say", text: "Opening the lesson…" }));
    let answer;
    try { answer = await c.server.learn_lesson(name); } catch {
      answer = { error: "The lesson could not be fetched; try again in a moment." };
    }
    if (wanted !== name) return;
    if (answer.error) { shelf(); told.textContent = answer.error; return; }
    const host = {
      trace, race: trace, href, slides: true,
      live: c.props.still ? null : (element, spec, heard) => liveRun(element, spec, heard, c.trigger),
      tools: c.props.still ? [] : [saver(name)],
      recall: () => kept()[name] || {}, remember: (record) => keep(name, record),
      link: (id) => addressOf(name, id, null, "alone"),
      moved: (screen2, alone) => here({ lesson: name, screen: screen2, figure: alone ? "alone" : null }),
      seeded: (number) => here({ lesson: name, seed: number }),
    };
    open = answer.quiz ? mountQuiz(place, answer.quiz, host, Number(seed) || 1 + Math.floor(Math.random() * 9999))
      : mountLesson(place, answer.lesson, host, screen, Boolean(figure));
  }

  function bring(query) {
    if (query.lesson) lesson(query.lesson, query.screen, query.seed, query.figure); else shelf();
  }
  c.element.addEventListener("click", (event) => {
    /** @type {HTMLAnchorElement} */
    const link = targetOf(event)?.closest("a[data-to]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const [kind, name] = link.dataset.to.split(":");
    if (kind === "shelf" || kind === "lesson") {
      event.preventDefault();
      history.pushState(null, "", kind === "lesson" ? addressOf(name) : addressOf());
      bring(Object.fromEntries(asked()));
      scrollTo({ top: 0, behavior: "instant" });
    } else if (kind === "method") {
      event.preventDefault();
      find("#rooms [role=tab][data-tab-id='methods']").click();
      const patience = AbortSignal.timeout(2000);        // a filter may hide the card for long
      whenThere(`[data-method="${CSS.escape(name)}"]`,
        (card) => whenShown(card, () => card.scrollIntoView({ block: "center" }), patience), patience);
    }
  });
  onMove(ROOM, bring);
  bring(asked().get("tab") === ROOM ? Object.fromEntries(asked()) : {});
}

// One lesson: screens with text and one instrument each, shown one at a time; notes for teachers; further reading. The
// public mountLesson.
/** @import { LessonHost } from "../view-types.d.ts" */
import { clamp, el, followTheme, followWidth, setAttributes, writeText } from "../base.js";
import { makeGlossary } from "../glossary.js";
import { lessonClaim, lessonNodes } from "./nodes.js";
import { lessonQuestion } from "./question.js";
import { lessonStage } from "./stage.js";
import { slideTools } from "../slides/slide.js";

const HALL = "For a lecture hall: the lesson alone, in large type.";
const LOOKS = { button: "ln-button", select: "ln-select", quiet: "ln-quiet" };

/**
 * data: the result of `presets.lessons.lesson`. host: trace(name), race(name) → promises of NDJSON; live, if runs can
 * be made (see stage.js); href(address) → a string or null; recall(), remember(record): the answers so far, by
 * question; moved(screen id, alone); link(screen id) → the address of its figure alone, or null; top: whether the
 * lesson is the whole page; tools: more buttons; slides: whether pictures can be saved. at: the id of the screen to
 * begin with.
 * figure: begin with that screen's figure alone, in large type.
 * @param {Element} element
 * @param {any} data
 * @param {LessonHost} host
 * @param {string | null} at
 * @param {boolean} [figure]
 */
export function mountLesson(element, data, host, at, figure = false) {
  const root = el("section", { class: "ds ln", "aria-labelledby": "ln-title" });
  element.replaceChildren(root);
  const glossary = makeGlossary(root), record = { ...host.recall() };
  const context = { glossary, symbols: data.symbols, href: host.href,
    directive: (spec) => (spec.kind === "claim" ? claim(spec) : question(spec)) };
  const nodes = lessonNodes(context);
  const asks = (node) => Boolean(node.directive) && node.directive.kind === "predict";
  let building = null, now = -1;

  const screens =
    data.screens.map((screen) =>
      ({ ...screen, element: null, stageView: null, questions: [], claims: [],
        left: screen.text.filter(asks).length }));
  const heading = (below, ...rest) => el(`h${(host.top ? 1 : 2) + below}`, ...rest);
  const title = heading(0, { id: "ln-title", class: "ln-title", tabindex: -1, text: data.title });
  const dots = el("ol", { class: "ln-dots", "aria-label": "Screens of this lesson" },
    ...screens.map((screen, i) => el("li", {},
      el("button", { type: "button", title: screen.title, onclick: () => go(i, true) }))));
  const holder = el("div", { class: "ln-screens" });
  const back = el("button", { type: "button", class: "ln-button", text: "Back", onclick: () => go(now - 1, true) });
  const next = el("button",
    { type: "button", class: "ln-button", "data-main": "", text: "Next", onclick: () => go(now + 1, true) });
  const place = el("span", { class: "ln-quiet" });
  const hall = el("button",
    { type: "button", class: "ln-button", text: "Full screen", title: HALL,
      onclick: () => large(!root.hasAttribute("data-hall")) });
  const onward = followed();
  const lesson = el("button",
    { type: "button", class: "ln-button", text: "Show the lesson", hidden: true, onclick: () => alone(false) });
  const end = el("div", { class: "ln-end" }, reading(),
    el("details", { class: "ln-teacher" }, el("summary", { text: "Teacher’s notes" }), ...nodes(data.teacher)));
  root.append(el("header", { class: "ln-head" },
    el("p", { class: "ln-kicker", text: `Lesson ${data.number} · ${data.minutes} minutes` }), title,
    el("div", { class: "ln-tools" }, hall, ...(host.tools || []))),
    el("p", { class: "ln-question-line", text: data.question }),
    holder, el("nav", { class: "ln-nav", "aria-label": "Screens" }, back, dots, place, next, onward, lesson), end);
  const unfollow = followTheme(root), unwatch = followWidth(root);

  /** Once all questions of a screen are guessed at, show its claims and covered figure, which give answers away. */
  function reveal(screen) {
    for (const one of screen.claims) one.hidden = false;
    if (screen.stageView) screen.stageView.uncover();
  }
  function claim(spec) {
    const told = lessonClaim(spec, nodes);
    told.hidden = building.left > 0;
    building.claims.push(told);
    return told;
  }

  /** A question belongs to the screen that is being built. */
  function question(spec) {
    const screen = building, guessed = (screen.guessed = screen.guessed || new Set());
    const asked = lessonQuestion(spec, {
      nodes, earlier: record[spec.number], judge: (judge) => (screen.stageView ? screen.stageView.readings(judge) : {}),
      toSet: (name, wanted) => (screen.stageView ? screen.stageView.toSet(name, wanted) : []),
      settled(outcome) {
        guessed.add(spec.number);
        if (guessed.size === screen.left) reveal(screen);
        if (!outcome) return;
        record[spec.number] = { right: outcome.right || Boolean(record[spec.number]?.right) };
        host.remember(record);
        mark();
      },
    });
    screen.questions.push({ spec, ...asked });
    return asked.element;
  }

  function build(screen) {
    building = screen;
    const text = el("div", { class: "ln-text" }, heading(1, { class: "ln-sub", tabindex: -1, text: screen.title }),
      ...nodes(screen.text));
    screen.element = el("div", { class: "ln-screen", "data-screen": screen.id, "data-alone": !screen.stage }, text);
    if (screen.stage) {
      screen.stageView = lessonStage(screen.stage, host,
        { nodes, asks: screen.left > 0, changed: () => screen.questions.forEach(({ look }) => look()),
          asked: () => reveal(screen) });
      const link = host.link(screen.id);
      const tools = el("div", { class: "ln-under" }, host.slides
        ? slideTools(screen.stageView.element,
          { name: () => `draftscope-${data.name}-${screen.id}`, heading: () => `${data.title}: ${screen.title}`,
            looks: LOOKS }).element : null,
        el("button", { type: "button", class: "ln-button ln-alone", text: "Figure alone",
          title: "For a lecture hall: this figure over the whole screen, in large type.", onclick: () => alone(true) }),
        link ? el("a", { class: "ln-link", href: link, text: "Link to this figure" }) : null);
      screen.element.append(el("div", { class: "ln-side" }, screen.stageView.element, tools));
    }
    holder.append(screen.element);
  }

  /** Show a screen. byHand: the reader asked for it, so its heading gets the focus. */
  function go(index, byHand = false) {
    const wanted = clamp(index, 0, screens.length - 1);
    if (wanted === now) return;
    now = wanted;
    screens.forEach((screen, i) => {
      if (i === now && !screen.element) build(screen);
      if (screen.element) screen.element.hidden = i !== now;
      if (i !== now && screen.stageView) screen.stageView.hide();
    });
    const screen = screens[now];
    if (screen.stageView) screen.stageView.show();
    back.disabled = now === 0;
    next.hidden = now === screens.length - 1;
    end.hidden = now !== screens.length - 1;
    if (onward) onward.hidden = now !== screens.length - 1;
    writeText(place, `${now + 1} of ${screens.length}`);
    mark();
    if (!byHand) return;
    host.moved(screen.id, root.hasAttribute("data-figure"));
    screen.element.querySelector(".ln-sub").focus({ preventScroll: true });
    root.scrollIntoView({ block: "start", behavior: "instant" });
  }

  /** The dots show which screen is open, and on which screens every question was answered. */
  function mark() {
    [...dots.children].forEach((dot, i) => {
      const numbers = screens[i].text.filter(asks).map((node) => node.directive.number);
      const done = numbers.length > 0 && numbers.every((one) => record[one]);
      setAttributes(dot.firstChild, { "aria-current": i === now ? "step" : null, "data-done": done,
        "aria-label": `${i + 1}: ${screens[i].title}${done ? " (answered)" : ""}` });
    });
  }

  /** A browser goes full screen only after a click; behind a link the lesson covers the page instead. */
  function large(on) {
    setAttributes(root, { "data-hall": on });
    writeText(hall, on ? "Leave full screen" : "Full screen");
    hall.title = on ? "Back to the page. The key Esc does the same." : HALL;
    if (on && root.requestFullscreen && navigator.userActivation?.isActive) root.requestFullscreen().catch(() => {});
    if (!on && document.fullscreenElement === root) document.exitFullscreen();
  }
  function alone(on) {
    setAttributes(root, { "data-figure": on });
    lesson.hidden = !on;
    large(on);
    reveal(screens[now]);
    host.moved(screens[now].id, on);
    (on ? lesson : screens[now].element.querySelector(".ln-alone")).focus({ preventScroll: true });
  }
  const leave = () => {
    if (root.hasAttribute("data-figure")) alone(false); else if (root.hasAttribute("data-hall")) large(false);
  };
  root.addEventListener("fullscreenchange", () => { if (!document.fullscreenElement) leave(); });
  root.addEventListener("keydown", (event) => {
    if (event.key === "Escape") leave();
  });

  /** A link to the lesson after this one, or to the quiz; none where there is no such page. */
  function followed() {
    const to = `lesson:${data.next}`, href = data.next ? host.href(to) : null;
    return href ? el("a",
      { class: "ln-button", "data-main": "", href, "data-to": to, hidden: true,
        text: data.next === "quiz" ? "To the quiz" : "Next lesson" }) : null;
  }

  function reading() {
    const one = ({ key, title: name, paper }) => {
      const href = host.href(`method:${key}`), called = el("strong", { text: name });
      return el("li", {}, href ? el("a", { href, "data-to": `method:${key}` }, called) : called,
        paper.title ? el("span", {}, " ", el("cite", { text: paper.title }),
          ` ${paper.authors}. ${paper.venue}, ${paper.year}.`) : null);
    };
    return el("div", { class: "ln-reading" }, heading(1, { class: "ln-sub", text: "You can now" }),
      el("ul", {}, ...data.goals.map((goal) => el("li", { text: goal }))),
      heading(1, { class: "ln-sub", text: "Read on" }), el("ul", {}, ...data.reading.map(one)));
  }

  go(Math.max(0, screens.findIndex(({ id }) => id === at)));
  if (figure && screens[now].stage) alone(true);
  return {
    go(id, withFigure = false) {
      go(screens.findIndex((screen) => screen.id === id));
      if (withFigure !== root.hasAttribute("data-figure")) alone(withFigure);
    },
    get screen() { return screens[now].id; }, large,
    destroy() {
      screens.forEach(({ stageView }) => { if (stageView) stageView.destroy(); });
      unfollow();
      unwatch();
      root.remove();
    },
  };
}

// The list of lessons, the quiz below it, and a timeline of the field with the methods of this page. The public
// mountShelf.
/** @import { LessonHost } from "../view-types.d.ts" */
import { el, followTheme, followWidth } from "../base.js";
import { emblem } from "./emblem.js";
import { plural } from "../words.js";

/**
 * data: {lessons, quiz: {title, questions}, timeline: [{year, title, authors, venue, key}]}. host: href(address) → a
 * string or null;
 * progress(name) → answered questions by number.
 * @type {(element: Element, data: any, host: Pick<LessonHost, "href" | "progress">) => { destroy(): void }}
 */
export function mountShelf(element, data, host) {
  const root = el("section", { class: "ds ln", "aria-label": "Lessons" });
  element.replaceChildren(root);
  const stop = [followTheme(root), followWidth(root)];
  const card = (lesson) => {
    const answered = Object.values(host.progress(lesson.name)), right = answered.filter((one) => one.right).length;
    return el("li", { class: "ln-card" }, emblem(lesson.name), el("p",
      { class: "ln-kicker", text: `${lesson.number} · ${lesson.minutes} minutes` }),
      el("h2", { class: "ln-sub" }, el("a",
        { href: host.href(`lesson:${lesson.name}`), "data-to": `lesson:${lesson.name}`, text: lesson.title })),
      el("p", { text: lesson.question }),
      el("p", { class: "ln-quiet", text: answered.length
        ? `${plural(answered.length, "question")} answered, ${right} right` : "" }));
  };
  root.append(el("ol", { class: "ln-shelf" }, ...data.lessons.map(card)),
    el("p", { class: "ln-quiz-line" }, el("a",
      { class: "ln-button", "data-main": "", href: host.href("lesson:quiz"), "data-to": "lesson:quiz",
        text: data.quiz.title }), el("span",
          { class: "ln-quiet", text: ` ${data.quiz.questions} questions with numbers of your class, to print and ` +
            `hand in.` })),
    timeline(data.timeline, host));
  return { destroy() { stop.forEach((one) => one()); root.remove(); } };
}

/** The years since blockwise parallel decoding: one row per year. */
function timeline(entries, host) {
  const years = [...new Set(entries.map(({ year }) => year))].sort();
  const one = ({ title, authors, key, name }) => {
    const href = key && host.href(`method:${key}`);
    const who = `${authors.split(",")[0]}${authors.includes(",") ? " and others" : ""}`;
    return el("li", { title: `${title}. ${authors}` },
      href ? el("a", { href, "data-to": `method:${key}`, text: name }) : el("span", { text: name }),
      el("span", { class: "ln-quiet", text: ` ${who}` }));
  };
  return el("section", { class: "ln-timeline", "aria-labelledby": "ln-years" },
    el("h2", { id: "ln-years", class: "ln-sub", text: "The field, year by year" }),
    el("ol", {},
      ...years.map((year) => el("li", {}, el("span", { class: "ln-year", text: year }),
        el("ul", {}, ...entries.filter((entry) => entry.year === year).map(one))))));
}

// The list of lessons, the quiz below it, and a timeline of the field with the methods of this page. The public
// mountShelf.
(function (D) {
  "use strict";

  /**
   * data: {lessons, quiz: {title, questions}, timeline: [{year, title, authors, venue, key}]}. host: href(address) → a string or null;
   * progress(name) → answered questions by number.
   */
  D.mountShelf = function (element, data, host) {
    const root = D.el("section", { class: "ds ln", "aria-label": "Lessons" });
    element.replaceChildren(root);
    const stop = [D.followTheme(root), D.followWidth(root)];
    const card = (lesson) => {
      const answered = Object.values(host.progress(lesson.name)), right = answered.filter((one) => one.right).length;
      return D.el("li", { class: "ln-card" }, D.el("p", { class: "ln-kicker", text: `${lesson.number} · ${lesson.minutes} minutes` }),
        D.el("h2", { class: "ln-sub" }, D.el("a", { href: host.href(`lesson:${lesson.name}`), "data-to": `lesson:${lesson.name}`, text: lesson.title })), D.el("p", { text: lesson.question }),
        D.el("p", { class: "ln-quiet", text: answered.length ? `${D.plural(answered.length, "question")} answered, ${right} right` : "" }));
    };
    root.append(D.el("ol", { class: "ln-shelf" }, ...data.lessons.map(card)),
      D.el("p", { class: "ln-quiz-line" }, D.el("a", { class: "ln-button", "data-main": "", href: host.href("lesson:quiz"), "data-to": "lesson:quiz", text: data.quiz.title }), D.el("span", { class: "ln-quiet", text: ` ${data.quiz.questions} questions with numbers of your class, to print and hand in.` })),
      timeline(data.timeline, host));
    return { destroy() { stop.forEach((one) => one()); root.remove(); } };
  };

  /** The years since blockwise parallel decoding: one row per year. */
  function timeline(entries, host) {
    const years = [...new Set(entries.map(({ year }) => year))].sort();
    const one = ({ title, authors, key, name }) => {
      const href = key && host.href(`method:${key}`), who = `${authors.split(",")[0]}${authors.includes(",") ? " and others" : ""}`;
      return D.el("li", { title: `${title}. ${authors}` }, href ? D.el("a", { href, "data-to": `method:${key}`, text: name }) : D.el("span", { text: name }), D.el("span", { class: "ln-quiet", text: ` ${who}` }));
    };
    return D.el("section", { class: "ln-timeline", "aria-labelledby": "ln-years" }, D.el("h2", { id: "ln-years", class: "ln-sub", text: "The field, year by year" }),
      D.el("ol", {}, ...years.map((year) => D.el("li", {}, D.el("span", { class: "ln-year", text: year }), D.el("ul", {}, ...entries.filter((entry) => entry.year === year).map(one))))));
  }
})(globalThis.Draftscope);

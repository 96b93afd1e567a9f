// The entry of an exported lesson: shows the lesson, the quiz or the list of lessons that lies in the page.
import { mountLesson } from "./lesson.js";
import { mountQuiz } from "./quiz.js";
import { mountShelf } from "./shelf.js";

const KEPT = "draftscope-learn";
const read = (id) => JSON.parse(document.getElementById(id).textContent);
const data = read("lesson"), runs = read("runs"), links = read("links"), element = document.getElementById("view");
const asked = () => new URLSearchParams(location.hash.slice(1));
const name = data.lesson ? data.lesson.name : "quiz";

function kept() {
  try { return JSON.parse(localStorage.getItem(KEPT)) || {}; } catch { return {}; }
}
function remember(record) {
  try {
    localStorage.setItem(KEPT, JSON.stringify({ ...kept(), [name]: record }));
  } catch { /* the browser keeps nothing */ }
}
function place(words) {
  try { history.replaceState(null, "", "#" + new URLSearchParams(words)); } catch { /* a frame of another origin */ }
}
const run = (wanted) => (wanted in runs ? Promise.resolve(runs[wanted]) : Promise.reject(new Error(wanted)));

const host = {
  top: true, slides: true, live: null, trace: run, race: run, remember,
  recall: () => kept()[name] || {},
  progress: (lesson) => kept()[lesson] || {},
  href: (to) => (to.startsWith("https:") ? to : links[to] || null),
  link: (id) => `#screen=${id}&figure=alone`,
  moved: (id, alone) => place(alone ? { screen: id, figure: "alone" } : { screen: id }),
  seeded: (seed) => place({ seed }),
};

/** @type {(wish: URLSearchParams) => any} */
function mount(wish) {
  if (data.shelf) return mountShelf(element, data.shelf, host);
  if (data.quiz) return mountQuiz(element, data.quiz, host, Number(wish.get("seed")) || 1);
  return mountLesson(element, data.lesson, host, wish.get("screen"), wish.has("figure"));
}
const view = mount(asked());
addEventListener("hashchange", () => {
  const wish = asked(), screen = wish.get("screen");
  if (screen && view.go) view.go(screen, wish.has("figure"));
});
globalThis.view = view;

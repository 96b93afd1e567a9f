"""A lesson as one self-contained HTML file, with the runs that it shows."""

import html
from collections.abc import Mapping

from viz.bundle import bundle_css, bundle_js, lesson_css, lesson_js
from viz.export import closed_page, embedded

_PAGE_CSS = """
html { color-scheme: light dark; background: light-dark(#f3f2ee, #0b0e14); }
body { margin: 0 auto; padding: 20px clamp(8px, 2.5vw, 36px) 36px; max-width: 1500px; }
.ln-home { margin: 0 0 10px; font: 400 0.9375rem/1.4 system-ui, sans-serif; }
.ln-home a { color: light-dark(#1a5d99, #8abaf0); }
@media print { .ln-home { display: none; } }
"""
_START_JS = """
(function () {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const data = read("lesson"), runs = read("runs"), links = read("links"), element = document.getElementById("view");
  const wish = new URLSearchParams(location.hash.slice(1));
  const place = (words) => { try { history.replaceState(null, "", "#" + new URLSearchParams(words)); } catch { /* a frame of another origin */ } };
  const name = data.lesson ? data.lesson.name : "quiz", KEY = "draftscope-learn";
  const kept = () => { try { return JSON.parse(localStorage.getItem(KEY)) || {}; } catch { return {}; } };
  const run = (wanted) => (wanted in runs ? Promise.resolve(runs[wanted]) : Promise.reject(new Error(wanted)));
  const host = {
    top: true, trace: run, race: run, live: null, slides: true, recall: () => kept()[name] || {},
    remember: (record) => { try { localStorage.setItem(KEY, JSON.stringify({ ...kept(), [name]: record })); } catch { /* it keeps nothing */ } },
    href: (to) => (to.startsWith("https://") ? to : links[to] || null), link: (id) => `#screen=${id}&figure=alone`,
    moved: (id, alone) => place(alone ? { screen: id, figure: "alone" } : { screen: id }), seeded: (seed) => place({ seed }), progress: (of) => kept()[of] || {},
  };
  if (data.shelf) globalThis.view = Draftscope.mountShelf(element, data.shelf, host);
  else if (data.quiz) globalThis.view = Draftscope.mountQuiz(element, data.quiz, host, Number(wish.get("seed")) || 1);
  else globalThis.view = Draftscope.mountLesson(element, data.lesson, host, wish.get("screen"), wish.has("figure"));
  addEventListener("hashchange", () => {
    const asked = new URLSearchParams(location.hash.slice(1)), at = asked.get("screen");
    if (at && globalThis.view.go) globalThis.view.go(at, asked.has("figure"));
  });
})();
"""


def page(
    data: Mapping, runs: Mapping[str, str], title: str, links: Mapping[str, str] | None = None
) -> str:
    """The HTML of a lesson, of the quiz, or of the list of lessons.

    data: {"lesson"}, {"quiz"} or {"shelf"}, each as the browser draws it. runs: NDJSON by name, which
    the caller has validated. links: the files beside this one, by the names that lessons use for them.
    """
    links = links or {}
    home = '<p class="ln-home"><a href="index.html">All lessons</a></p>' if links else ""
    body = f"""<main>
{home if "shelf" not in data else f"<h1>{html.escape(title)}</h1>"}
<div id="view"></div>
</main>
<script id="lesson" type="application/json">{embedded(data)}</script>
<script id="runs" type="application/json">{embedded(dict(runs))}</script>
<script id="links" type="application/json">{embedded(dict(links))}</script>"""
    css = bundle_css() + lesson_css() + _PAGE_CSS
    return closed_page(title, body, css, bundle_js() + lesson_js() + _START_JS, images="blob:")

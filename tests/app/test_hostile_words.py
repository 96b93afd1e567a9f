"""The page's own pieces, filled with strings that have broken pages before: cards, tour, lanes, forms."""

import pytest

from app.assets import head
from tests.viz.hostile import HOSTILE

PAGE = """<!DOCTYPE html><html lang="en"><head><title>t</title>{head}</head><body>
<main class="gradio-container"><div id="here"></div></main></body></html>"""
HAND = """{element: here, trigger() {}, watch() {}, server: {}, props: %s}"""
OPTIONS = """[{name: w, type: "choice", choices: [w, "other"], default: w, help: w},
  {name: w + "2", type: "int", minimum: 0, maximum: 9, default: 1, help: w}]"""
DRAFTERS = f"{{[w]: {{label: w, summary: w, verifier: w, options: {OPTIONS}}}}}"
PIECES = {
    "cards": HAND % "{value: w, cards: [{name: w, title: w, family: w, look_for: w}]}",
    "exampleNote": "'watch', "
    + HAND % "{value: w, own: 'x', prompt: 'p', examples: {[w]: {prompt: w, look_for: w}}}",
    "plain": HAND % "{value: JSON.stringify({state: 'done', message: w})}",
    "options": HAND % f"{{value: JSON.stringify({{drafter: w, values: {{}}}}), menu: {DRAFTERS}}}",
    "lanes": HAND
    % f"""{{value: JSON.stringify([{{drafter: w, values: {{}}, verifier: w + "!"}}, {{drafter: w, values: {{}}}}]),
      menu: {DRAFTERS}, rules: {{[w]: {{"": w, [w + "!"]: w}}}}, most: 5}}""",
    "whatIf": HAND % f"{{menu: {DRAFTERS}, rules: {{[w]: {{'': w, [w]: w}}}}}}",
    "terms": "here, [w, [w, w]]",
    "foot": "here, w",
}
TOUR = """(() => {
  const card = DraftscopePage.tourCard({stops: [w], done: w}, {});
  here.append(card.element);
  card.tell({title: w, text: w, ask: w}, 1);
  card.praise();
})()"""
FILL = """([words, tame]) => {
  const here = document.getElementById('here'), tags = (w) => {
    here.replaceChildren();
    (%s);
    return [...here.querySelectorAll('*')].map((e) => e.tagName).join();
  };
  const wanted = tags(tame), odd = [];
  let told = 0;
  for (const w of words) {
    if (tags(w) !== wanted) odd.push(w);
    if (here.textContent.includes(w)) told++;
  }
  here.replaceChildren();
  return {odd, told};
}"""


@pytest.fixture(scope="module")
def bare(browser):
    """A page with all scripts and styles of the page, and nothing on it."""
    page = browser.new_page()
    page.happened = []
    page.on("pageerror", lambda error: page.happened.append(str(error)))
    page.on("dialog", lambda dialog: (page.happened.append("dialog"), dialog.dismiss()))
    page.on("request", lambda request: page.happened.append(request.url))
    page.set_content(PAGE.format(head=head()))
    yield page
    page.close()


CALLS = {**{name: f"DraftscopePage.{name}({hand})" for name, hand in PIECES.items()}, "tour": TOUR}


@pytest.mark.parametrize("name", CALLS)
def test_hostile_words_make_nothing_but_text(bare, name):
    found = bare.evaluate(FILL % CALLS[name], [list(HOSTILE), "tame"])
    assert found["odd"] == [], "the same elements, whatever the words"
    assert found["told"] == len(HOSTILE), "and all of the words are there"
    assert bare.happened == []

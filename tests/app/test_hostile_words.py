"""The page's own components (cards, tour, lanes, forms), filled with strings that have broken pages before."""

import pytest

from tests.app.bare import bare_page
from tests.viz.hostile import HOSTILE

HAND = """{element: here, trigger() {}, watch() {}, server: {}, props: %s}"""
OPTIONS = """[{name: w, type: "choice", choices: [w, "other"], default: w, help: w, label: w},
  {name: w + "2", type: "int", minimum: 0, maximum: 9, default: 1, help: w, advanced: true},
  {name: w + "3", type: "bool", default: true, help: w, only: "sampled"}]"""
OFFER = f"""DraftscopePage.takeOffer({{families: {{[w]: w}}, rules: {{[w + "!"]: {{title: w, summary: w, options: {OPTIONS}}}}},
  drafters: {{[w]: {{label: w, title: w, family: w, summary: w, exact: true, missing: "x" + w, options: {OPTIONS},
    rules: {{[w + "!"]: w}}, automatic: {{cold: w + "!", warm: w + "!"}}}}}}}})"""
PAIR = '{drafter: w, options: {}, verifier: w + "!", rule_options: {}}'
CARD = """{key: w, title: w, kind: w, family: w, exactness: "lossy", needs_training: true, available: false, mechanism: w,
  watch: w, paper: {title: "x" + w, authors: w, venue: w, year: w}, claim: {text: "x" + w, setting: w},
  part: {name: "x" + w, recipe: w}, example: "x" + w, measured: {}}"""
PIECES = {
    "cards": HAND % "{value: w, cards: [{name: w, title: w, family: w, look_for: w}]}",
    "exampleNote": "'watch', "
    + HAND % "{value: w, own: 'x', prompt: 'p', examples: {[w]: {prompt: w, look_for: w}}}",
    "pair": HAND % f"{{value: JSON.stringify({PAIR})}}",
    "lanes": HAND % f"{{value: JSON.stringify([{PAIR}, {{drafter: w}}]), most: 5}}",
    "methods": HAND % f"{{methods: [{CARD}], families: {{[w]: w}}}}",
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
    for (const field of here.querySelectorAll('[role=combobox]')) field.click();
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
    """A page with all scripts and styles of the real page but no content."""
    page = browser.new_page()
    page.happened = []
    page.on("pageerror", lambda error: page.happened.append(str(error)))
    page.on("dialog", lambda dialog: (page.happened.append("dialog"), dialog.dismiss()))
    page.on("request", lambda request: page.happened.append(request.url))
    yield bare_page(page, {})
    page.close()


CALLS = {name: f"{OFFER}, DraftscopePage.{name}({hand})" for name, hand in PIECES.items()}
CALLS["tour"] = TOUR


@pytest.mark.parametrize("name", CALLS)
def test_hostile_words_make_nothing_but_text(bare, name):
    found = bare.evaluate(FILL % CALLS[name], [list(HOSTILE), "tame"])
    assert found["odd"] == [], "the same elements, whatever the words"
    assert found["told"] == len(HOSTILE), "and all of the words are there"
    assert bare.happened == []

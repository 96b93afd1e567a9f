"""The tour's arithmetic and choices, called in a browser that holds the page's scripts but no page."""

import pytest

from app.words import TOUR

EVERYWHERE = """(sides) => {
  const bad = [], cards = [[400, 260], [366, 240]], rooms = [[1280, 860], [390, 844], [390, 500]];
  const hides = (at, card, spot) => at.left < spot.right && at.left + card.width > spot.left && at.top < spot.bottom && at.top + card.height > spot.top;
  for (const [width, height] of rooms) for (const [w, h] of cards) {
    const room = {width, height}, card = {width: w, height: h};
    for (let i = 0; i < 400; i++) {
      const left = (i * 53) % width, top = (i * 97) % (height * 2) - height / 2;
      const spot = {left, top, right: left + 10 + (i * 31) % 500, bottom: top + 10 + (i * 71) % 600};
      const at = DraftscopePage.placeCard(spot, card, room, sides);
      if (at.left < 0 || at.top < 0 || at.top + h > height || at.left + w > width) if (w <= width) bad.push(['outside', spot, at]);
      const free = spot.top - 28 >= h && spot.top < height || spot.bottom + 28 + h <= height && spot.bottom > 0;
      if (free && hides(at, card, spot)) bad.push(['hides', room, spot, at]);
    }
  }
  return bad.slice(0, 5);
}"""


@pytest.mark.parametrize("sides", [["below", "above"], ["above", "below"]])
def test_the_card_stays_in_the_window_and_hides_nothing_without_need(scripts, sides):
    assert scripts.evaluate(EVERYWHERE, sides) == []


def test_the_page_scrolls_only_if_it_must(scripts):
    scroll = """(top) => DraftscopePage.scrollFor({left: 20, right: 300, top, bottom: top + 200},
      {width: 366, height: 240}, {width: 390, height: 844}, ['below', 'above'])"""
    assert scripts.evaluate(scroll, 100) == 0
    for top in (-500, 900, 3000):
        assert 12 <= top - scripts.evaluate(scroll, top) <= 844 - 200 - 240


def test_the_card_leaves_free_what_the_click_changes(scripts):
    """A tree and the text below it: where the window has room, the card hides neither."""
    place = """([top, height]) => {
      const tree = {left: 20, right: 900, top, bottom: top + 300}, text = {left: 20, right: 1200, top: top + 310, bottom: top + 450};
      const card = {width: 400, height: 260}, room = {width: 1280, height}, sides = ['above', 'below'];
      const by = DraftscopePage.scrollFor(text, card, room, sides, tree), moved = (box) => ({...box, top: box.top - by, bottom: box.bottom - by});
      const at = DraftscopePage.placeCard(moved(text), card, room, sides, moved(tree));
      return [at.top >= moved(text).bottom || at.top + card.height <= moved(tree).top, moved(tree).top >= 0, at.top >= 0 && at.top + card.height <= height]; }"""
    for top in (-400, 100, 700):
        assert scripts.evaluate(place, [top, 860]) == [True, True, True]
    assert scripts.evaluate(place, [100, 500])[2], "a low window: the tree must give way"


def test_a_browser_that_keeps_nothing_can_take_the_tour(scripts):
    text = scripts.evaluate(
        """(words) => {
          Object.defineProperty(globalThis, 'localStorage', {configurable: true, get() { throw new Error('blocked'); }});
          document.body.append(DraftscopePage.tourStart(words));
          document.querySelector('#no-tour').click();
          return document.body.innerText; }""",
        TOUR,
    )
    assert TOUR["take"] in text and TOUR["decline"] not in text


def test_every_stop_has_words_and_a_place(scripts):
    places = scripts.evaluate("Object.keys(DraftscopePage.TOUR_STOPS)")
    assert [stop["name"] for stop in TOUR["stops"]] == places
    assert len(places) == 6

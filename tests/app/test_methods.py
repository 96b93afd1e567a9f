"""The Methods tab: its cards can be found, filtered and watched."""

import json

import pytest

from app.methods import TOLD
from presets import cards, preset, trace_text
from tests.app.bare import bare_page
from tests.app.test_page import PHONE
from tests.axe import violations

TOY = {
    **dict.fromkeys(TOLD, ""),
    "title": "Toy",
    "family": "chain",
    "kind": "drafter",
    "exactness": "exact",
    "mechanism": "It drafts.",
    "watch": "Look.",
    "needs_training": False,
    "available": True,
    "paper": {},
    "claim": {},
    "part": {},
    "measured": {},
    "price": {},
    "loses": "",
}
TOYS = [
    {
        **TOY,
        "key": "ash",
        "title": "Ash",
        "exactness": "lossy",
        "price": {
            "temperature": 0.8,
            "texts": 12,
            "exact": 0.25,
            "bits_per_byte": 0.9,
            "divergence": 1.5,
        }
        | {"plain_bits_per_byte": 0.625},
    },
    {
        **TOY,
        "key": "birch",
        "title": "Birch",
        "needs_training": True,
        "family": "tree",
        "loses": "On two cores its leaves fall.",
        "measured": {"kept_before": 0.612, "kept_after": 0.7},
    },
    {**TOY, "key": "cedar", "title": "Cedar", "exactness": "both", "mechanism": "Like an ash."},
    {
        **TOY,
        "key": "elm",
        "title": "Elm",
        "exactness": "n/a",
        "kind": "recipe",
        "measured": {"before": 2.0, "after": 2.5},
    },
    {
        **TOY,
        "key": "fir",
        "title": "Fir",
        "exactness": "n/a",
        "kind": "recipe",
        "available": False,
        "part": {"name": "needles", "recipe": "grow"},
        "measured": {"new_tokens": 30, "steps": 10, "target_passes": 11, "tokens_per_step": 3.0}
        | {"acceptance_rate": None},
    },
]
MOUNT = """(methods) => {
  const props = {value: '', methods, families: {chain: 'chain', tree: 'tree'}};
  DraftscopePage.methods({element: here, props, trigger() {}});
}"""


def shown(page) -> list[str]:
    return [
        card.get_attribute("data-method")
        for card in page.locator("[data-method]").all()
        if card.is_visible()
    ]


@pytest.fixture
def toys(tabs):
    page = bare_page(tabs.open(), {})
    page.set_default_timeout(20_000)
    page.evaluate(MOUNT, TOYS)
    yield page
    tabs.close(page)


def test_search_and_filters_find_cards(toys):
    assert shown(toys) == ["ash", "birch", "cedar", "elm", "fir"]
    for written in ("ash", "A-sh", "ÁSH"):
        toys.get_by_label("Search").fill(written)
        assert shown(toys) == ["ash", "cedar"], written
    toys.get_by_label("Search").fill("birhc")
    assert shown(toys) == ["birch"], "one wrong letter"
    toys.get_by_label("Search").fill("ash")
    assert shown(toys) == ["ash", "cedar"], "in the sentences, too"
    assert toys.get_by_role("status").inner_text() == "2 of 5 methods"
    toys.get_by_label("Output").select_option("exact")
    assert shown(toys) == ["cedar"]
    toys.get_by_label("Search").fill("")
    assert shown(toys) == ["birch", "cedar"]
    toys.get_by_label("Training").select_option("yes")
    assert shown(toys) == ["birch"]
    toys.get_by_label("Family").select_option("chain")
    assert shown(toys) == []
    assert toys.get_by_role("status").inner_text().startswith("None of 5 methods.")
    for name in ("Output", "Training", "Family"):
        toys.get_by_label(name).select_option("")
    assert toys.get_by_role("status").inner_text() == "5 methods"


def test_a_card_says_what_is_missing_and_what_was_measured(toys):
    fir = open_card(toys, "fir").inner_text()
    assert "needles" in fir and "grow" in fir
    assert "3.00 tokens a step: 30 tokens in 11 passes" in fir
    toys.locator("[data-method=elm] summary").press("Enter")  # as with the pointer
    toys.wait_for_selector("[data-method=elm][open] .pg-method-look")
    elm = open_card(toys, "elm").inner_text()
    assert "2.50 tokens a step on held-out texts, in the place of 2.00." in elm
    birch = open_card(toys, "birch").inner_text()
    assert "70.0 % of its draws are kept at temperature 1" in birch and "61.2 %" in birch
    assert "On two cores its leaves fall." in birch and "Loses" not in elm
    assert toys.get_by_role("button").count() == 0, "no example, nothing to watch"
    ash = open_card(toys, "ash").inner_text()
    assert (
        "9 of 12 texts differ from those of plain decoding, at temperature 0.8, where chance" in ash
    )
    assert "The target finds its texts less likely than those of plain decoding." in ash
    assert "differ from those" not in fir, "lossless: no price"


def open_card(page, key: str):
    """Open the card of this method, and return it."""
    card = page.locator(f"[data-method={key}]")
    if card.get_attribute("open") is None:
        card.locator("summary").click()
    card.locator(".pg-method-look").wait_for()
    return card


def open_methods(visitor):
    visitor.page.get_by_role("tab", name="Methods").click()
    visitor.page.wait_for_selector("[data-method]")


@pytest.mark.journey
def test_watch_it_opens_the_finished_run_with_its_controls(visit):
    """Tested with a card that has an example of its own, and one whose example is listed."""
    visitor = visit("/")
    page = visitor.page
    own = next(card for card in cards().values() if card.own_example and card.kind == "rule")
    listed = next(card for card in cards().values() if card.example and not card.own_example)
    for card in (own, listed):
        example, recorded = preset(card.example), trace_text(card.example)
        open_methods(visitor)
        open_card(page, card.key).get_by_role("button", name="Watch it").click()
        page.wait_for_function("t => DraftscopePage.trace('watch') === t", arg=recorded)
        assert page.locator("#tree").is_visible()
        page.wait_for_function(
            "p => document.querySelector('#prompt textarea').value === p", arg=example.prompt
        )
        page.wait_for_function(
            "look => document.querySelector('.pg-note').textContent === 'Look for: ' + look",
            arg=example.look_for,
        )
        chosen = page.locator("#preset :checked")
        assert [one.get_attribute("value") for one in chosen.all()] == [example.name] * (
            card is listed
        )
        assert page.input_value("#drafter input").endswith(f"({example.drafter})")
        assert page.input_value("#verifier") == (example.verifier or "")
    open_methods(visitor)
    open_card(page, own.key).get_by_role("button", name="Watch it").click()
    page.wait_for_function(
        "rule => document.querySelector('#verifier').value === rule", arg=own.own_example.verifier
    )
    assert visitor.run() == "done"
    made, told = (json.loads(t.splitlines()[0]) for t in (visitor.trace(), recorded))
    assert made["verifier"]["key"] == own.key and told["verifier"]["key"] != own.key
    assert made["sampling"]["temperature"] == own.own_example.temperature
    page.click("#copy-link")
    page.wait_for_function("name => location.search.includes(`preset=${name}`)", arg=own.key)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_an_address_opens_it_and_nothing_stands_in_the_way(visit, scheme):
    path = f"/?tab=methods&__theme={scheme}"
    page = visit(path, color_scheme=scheme, **PHONE).page
    page.wait_for_selector("[data-method]")
    assert page.locator("[data-method]").count() == len(cards())
    first = [page.locator("[data-method]").nth(i).get_attribute("data-method") for i in (0, 1)]
    assert first == ["none", "chain"], "of a family those first that an example of Watch shows"
    page.locator("[data-method] summary").nth(3).click()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert violations(page) == []

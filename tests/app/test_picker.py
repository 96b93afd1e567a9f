"""The drafter picker and the controls that belong to it, with many throw-away drafters and no server."""

import json

import pytest

from app import menu, theme
from app.controls import request
from app.link import read
from engine.core.options import Option
from engine.methods import drafters
from engine.methods.none.drafter import NoDrafter
from engine.parts.loading import ModelPaths
from engine.rules.rejection import Rejection
from tests.app.bare import bare_page
from tests.axe import violations

NAMES = (
    *("Ash", "Birch", "Cedar", "Dogwood", "Elder tree", "Fir", "Ginkgo", "Hazel", "Ironwood"),
    *("Juniper", "Kapok", "Larch", "Maple", "Nutmeg", "Oak", "Pine, tall", "Quince", "Rowan"),
    *("Spruce", "Teak", "Umbrella pine", "Viburnum", "Willow", "Yew", "Zelkova"),
)
FAMILIES = ("chain", "tree", "retrieval", "diffusion", "heads", "self", "decoder")
PAIR = menu.plain_pair("oak")
MOUNT = """([value, temperature]) => {
  const heard = {}, props = {value};
  window.props = props; window.told = 0; window.bring = (next) => { props.value = next; heard.value(); };
  here.replaceChildren();
  DraftscopePage.setTemperature('watch', temperature);
  DraftscopePage.pair({element: here, props, trigger: () => { window.told++; }, watch: (name, hear) => { heard[name] = hear; }});
}"""
THEME = """(variables) => {
  for (const [name, value] of Object.entries(variables)) document.documentElement.style.setProperty(name, value);
}"""


def throw_away(number: int, name: str) -> type:
    """Return a drafter for this test only, with options of every sort. One in nine such drafters lacks its part."""
    options = (
        Option("length", "int", 4, "How many.", 1, 9, label="how far"),
        Option("mode", "choice", "quick", "Which way.", choices=("quick", "slow")),
        Option("patience", "int", 3, "Of the slow way.", 1, 9, depends_on=("mode", "slow")),
        Option("haste", "int", 3, "Of patience.", 1, 9, depends_on=("patience", 5)),
        Option("heat", "float", 0.5, "Of draws.", 0.0, 1.0, only="sampled"),
        Option("frost", "float", 0.5, "Of favourites.", 0.0, 1.0, only="greedy"),
        Option("depth", "int", 2, "For those who know.", 1, 9, advanced=True),
    )
    about = {
        "key": name.split(",")[0].lower().replace(" ", "_"),
        "title": name,
        "family": FAMILIES[number % len(FAMILIES)],
        "summary": f"Grows number {number} of its kind.",
        "needs": {"draft": "draft"} if number % 9 == 1 else {},
        "options": options,
    }
    return type(f"ThrowAway{number}", (NoDrafter,), about)


class Lenient(Rejection):
    """A lossy rule with options, for this test only."""

    key, title, summary = "lenient", "Lenient rule", "keeps what is likely enough"
    exact_kinds = frozenset()
    options = (Option("mercy", "float", 0.3, "How lenient.", 0.0, 1.0),)


@pytest.fixture(scope="module")
def many():
    """Yield the page's offer, as if all these drafters and the lenient rule were registered."""
    made = [throw_away(*entry) for entry in enumerate(NAMES)]
    patch = pytest.MonkeyPatch()
    patch.setattr(menu, "drafters", lambda: {cls.key: cls for cls in made})
    rules = {**menu.verifiers(), "lenient": Lenient}
    patch.setattr(menu, "verifiers", lambda: rules)
    patch.setattr(menu, "model_paths", lambda models="": ModelPaths("nowhere"))
    yield menu.offer()
    patch.undo()


@pytest.fixture
def light(tabs, many):
    page = tabs.open()
    page.set_default_timeout(20_000)
    yield bare_page(page, many)
    tabs.close(page)


def variables(scheme: str) -> dict[str, str]:
    """Return the colours of the page's theme, as Gradio writes them."""
    dark, made = scheme == "dark", theme.theme()
    names = (
        *("background_fill_primary", "body_text_color", "body_text_color_subdued"),
        *("border_color_primary", "input_background_fill", "input_border_color", "slider_color"),
        *("button_secondary_background_fill_hover", "body_background_fill"),
    )
    found = {n: getattr(made, n + "_dark" if dark else n) for n in names}
    return {
        **{"--" + n.replace("_", "-"): value for n, value in found.items()},
        "background": found["body_background_fill"],
    }


def mount(page, **changes) -> None:
    page.evaluate(MOUNT, [json.dumps({**PAIR, **changes}), 0])


def value(page) -> dict:
    return json.loads(page.evaluate("props.value"))


def active(page) -> str | None:
    """Return the key of the option that the field marks as active, which must be visible within the list."""
    return page.evaluate("""() => {
      const id = document.querySelector('.pg-picker-field').getAttribute('aria-activedescendant');
      if (!id) return null;
      const option = document.getElementById(id), box = option.getBoundingClientRect();
      const list = option.closest('[role=listbox]').getBoundingClientRect();
      if (box.top < list.top - 1 || box.bottom > list.bottom + 1) return 'out of sight';
      return option.dataset.key;
    }""")


def shown(page, mark: str = "data-option") -> list[str]:
    fields = page.locator(f"[{mark}]").all()
    return [field.get_attribute(mark) for field in fields if field.is_visible()]


def test_three_letters_find_an_entry(light):
    mount(light)
    light.keyboard.press("Tab")
    field = light.get_by_role("combobox", name="Drafter")
    assert field.evaluate("e => e === document.activeElement")
    assert field.input_value() == "Oak (oak)"
    assert field.get_attribute("aria-expanded") == "false"
    light.keyboard.type("vib")
    assert field.get_attribute("aria-expanded") == "true"
    assert active(light) == "viburnum"
    assert light.get_by_role("status").inner_text() == "1 drafter."
    light.keyboard.press("Enter")
    assert field.input_value() == "Viburnum (viburnum)"
    assert field.get_attribute("aria-expanded") == "false" and active(light) is None
    assert value(light) == {**PAIR, "drafter": "viburnum", "options": value(light)["options"]}
    assert light.evaluate("told") == 1


def test_what_begins_so_comes_before_what_contains_it(light):
    mount(light)
    field = light.get_by_role("combobox", name="Drafter")
    field.click()
    light.keyboard.type("pine")
    keys = light.locator("[role=option]:visible").evaluate_all("all => all.map(o => o.dataset.key)")
    assert set(keys) == {"pine", "umbrella_pine"}
    light.keyboard.press("Control+A")
    light.keyboard.type("tree elder")
    assert active(light) == "elder_tree", "all words, in any order"
    light.keyboard.press("Control+A")
    light.keyboard.type("number 24")
    assert active(light) == "zelkova", "in the summary, too"
    light.keyboard.press("Control+A")
    light.keyboard.type("xyzzy")
    assert active(light) is None
    assert light.get_by_role("status").inner_text() == "0 drafters."
    light.keyboard.press("Enter")
    assert value(light)["drafter"] == "oak"


def test_the_keys_of_a_list_walk_through_it(light):
    mount(light)
    field = light.get_by_role("combobox", name="Drafter")
    field.focus()
    light.keyboard.press("ArrowDown")
    assert active(light) == "oak", "it opens where it stands"
    order = light.locator("[role=option]").evaluate_all("all => all.map(o => o.dataset.key)")
    at = order.index("oak")
    for key, expected in (
        ("ArrowDown", order[at + 1]), ("ArrowUp", order[at]), ("Home", order[0]),
        ("ArrowUp", order[-1]), ("ArrowDown", order[0]), ("End", order[-1]),
        ("PageUp", order[-9]), ("PageDown", order[-1]),
    ):  # fmt: skip
        light.keyboard.press(key)
        assert active(light) == expected
    light.keyboard.press("Escape")
    assert field.input_value() == "Oak (oak)" and value(light)["drafter"] == "oak"
    light.keyboard.type("wil")
    light.keyboard.press("Tab")
    assert field.input_value() == "Oak (oak)", "who leaves has chosen nothing"
    assert light.locator("[role=listbox]").is_hidden()


def test_the_list_has_groups_and_says_what_is_exact_and_what_is_missing(light, many):
    mount(light)
    field = light.get_by_role("combobox", name="Drafter")
    field.click()
    groups = light.locator("[role=listbox] [role=group]").all()
    named = [group.locator("[role=presentation]").inner_text().lower() for group in groups]
    assert named == [menu.FAMILIES[family] for family in FAMILIES]
    options = light.locator("[role=option]")
    assert options.count() == len(NAMES)
    for key, about in many["drafters"].items():
        said = light.locator(f"[data-key={key}]").get_attribute("aria-label")
        assert said.startswith(about["title"]) and said.endswith(f"({key})")
        assert (about["missing"] or "lossless") in said
    light.keyboard.type("birch")
    light.keyboard.press("Enter")
    assert light.locator("[data-key=birch]").get_attribute("aria-disabled") == "true"
    assert "needs a" in light.locator("[data-key=birch]").inner_text()
    assert "needs a" in light.get_by_role("status").inner_text()
    assert value(light)["drafter"] == "oak", "it cannot be chosen"
    light.locator("[data-key=birch]").click(force=True)
    assert value(light)["drafter"] == "oak"


def test_some_drafters_stand_first(tabs, many):
    page = bare_page(tabs.open(), {**many, "first": ["willow", "absent", "ash"]})
    mount(page, drafter="ash")
    field = page.get_by_role("combobox", name="Drafter")
    field.click()
    keys = page.locator("[role=option]").evaluate_all("all => all.map(o => o.dataset.key)")
    assert keys[:2] == ["willow", "ash"] and len(keys) == len(set(keys)) == len(NAMES)
    top = page.locator("[role=listbox] [role=group]").first
    assert top.locator("[role=presentation]").inner_text().lower() == "to begin with"
    assert top.locator("[role=option]").count() == 2
    assert page.locator("[role=listbox]").evaluate("list => list.scrollTop") == 0
    assert active(page) == "ash"
    page.keyboard.type("willow")
    assert active(page) == "willow"
    tabs.close(page)


def test_those_to_begin_with_are_drafters():
    assert set(menu.FIRST) <= set(drafters())


def test_only_what_does_something_is_shown(light):
    mount(light)
    assert shown(light) == ["length", "mode", "frost"]
    assert light.locator(".pg-idle").first.inner_text() == (
        "The option “heat” works only above temperature 0, so it is not shown now."
    )
    light.get_by_label("mode").select_option("slow")
    assert shown(light) == ["length", "mode", "patience", "frost"]
    light.get_by_label("patience").fill("5")
    light.keyboard.press("Tab")
    assert "haste" in shown(light)
    light.get_by_label("mode").select_option("quick")
    assert "haste" not in shown(light), "what it depends on is hidden itself"
    light.get_by_text("Advanced (1)").click()
    assert shown(light)[-1] == "depth"
    light.evaluate("DraftscopePage.setTemperature('watch', 0.7)")
    assert shown(light) == ["length", "mode", "heat", "depth"]
    assert light.get_by_label("how far").is_visible()
    mount(light, options={"depth": 7})
    assert "depth" in shown(light), "an advanced option that is set is not folded away"


def test_rules_bring_their_own_options(light):
    mount(light)
    rule = light.locator("#verifier")
    assert "Here: Greedy" in light.inner_text(".pg-judging")
    light.evaluate("DraftscopePage.setTemperature('watch', 0.7)")
    assert "Here: Rejection" in light.inner_text(".pg-judging"), "the automatic one has changed"
    rule.select_option("lenient")
    assert "lossy" in rule.locator("option:checked").inner_text()
    light.get_by_label("mercy").fill("0.75")
    light.keyboard.press("Tab")
    assert (value(light)["verifier"], value(light)["rule_options"]) == ("lenient", {"mercy": 0.75})
    rule.select_option("")
    assert value(light)["rule_options"] == {} and shown(light, "data-rule-option") == []
    brought = {**PAIR, "drafter": "fir", "verifier": "lenient", "rule_options": {"mercy": 0.1}}
    light.evaluate("bring", json.dumps(brought))
    assert light.get_by_label("mercy").input_value() == "0.1"
    assert light.get_by_role("combobox", name="Drafter").input_value() == "Fir (fir)"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_stands_in_the_way_of_anybody(scheme, tabs, many):
    page = bare_page(tabs.open(viewport={"width": 390, "height": 844}), many, scheme)
    page.evaluate(THEME, variables(scheme))
    mount(page)
    page.get_by_role("combobox", name="Drafter").click()
    wide = "document.documentElement.scrollWidth"
    assert page.evaluate(wide) <= 390
    for typed in ("", "bir", "xyz"):
        page.keyboard.type(typed)
        assert violations(page) == []
    page.keyboard.press("Escape")
    page.locator("#verifier").select_option("lenient")
    assert violations(page) == []
    assert page.evaluate(wide) <= 390
    tabs.close(page)


def test_an_address_names_the_options_of_a_rule(many):
    """The values are clamped to the ranges that the rule declares; options of another rule are left out."""
    asked = {"drafter": "oak", "verifier": "lenient", "r.mercy": "9", "r.other": "1", "t": "0.5"}
    pair = json.loads(read(asked, {}, many)["pair"])
    assert pair == {**PAIR, "verifier": "lenient", "rule_options": {"mercy": 1}}
    pair = json.loads(read({**asked, "verifier": "greedy"}, {}, many)["pair"])
    assert pair["rule_options"] == {}


def test_options_of_a_rule_that_does_not_judge_are_left_behind():
    values = {"prompt": "Once", "temperature": 0.5}
    pair = {**menu.plain_pair("none"), "rule_options": {"mercy": 1}}
    assert request({**values, "pair": json.dumps(pair)}).rule_options == {}

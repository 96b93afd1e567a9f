"""A number out of range is set to its bound, and the page says so."""


def test_an_option_out_of_range_says_that_it_was_set_to_its_bound(visit):
    visitor = visit("/", reduced_motion="reduce")
    page = visitor.page
    visitor.pick("chain")
    length = page.locator("[data-option=length]")
    length.fill("99")
    length.press("Tab")
    assert length.input_value() == "32"
    said = page.locator(".pg-option:has([data-option=length]) .pg-bound")
    assert said.inner_text() == "99 is out of range (0 to 32): set to 32."
    length.fill("4")
    assert said.is_hidden()


def test_a_slider_says_it_too(visit):
    visitor = visit("/", reduced_motion="reduce")
    page = visitor.page
    visitor.change()
    page.click("#more button")
    page.locator("#temperature input[type=number]").fill("9")
    said = page.locator("#temperature .pg-bound")
    said.get_by_text("9 is out of range (0 to 2): set to 2.").wait_for()
    page.locator("#temperature input[type=number]").fill("1")
    said.get_by_text("out of range").wait_for(state="detached")


def test_plain_names_stand_first_and_the_rest_under_advanced(visit):
    visitor = visit("/", reduced_motion="reduce")
    page = visitor.page
    visitor.change()
    page.click("#more button")
    page.locator("#temperature").wait_for()
    page.locator("#max_new_tokens").wait_for()
    assert page.locator("#top_k").is_hidden() and page.locator("#json-schema").is_hidden()
    page.click("#advanced button")
    page.locator("#top_k").wait_for()
    page.locator("#json-schema").wait_for()
    assert "Does nothing at temperature 0" in page.inner_text("#seed")

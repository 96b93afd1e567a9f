"""Brings the Watch tab into a state: that of an example, an address, a recorded request, or a visitor's trace."""

from collections.abc import Iterable, Iterator, Mapping

import gradio as gr

from app import growing, link, recorded, traces
from app.controls import FIELDS, RANGES
from app.live import Update
from app.own import own
from app.own_models import shown as conversation
from app.parts import emit, shown
from app.watch_runs import TAB
from engine.trace import read_trace
from presets.families import converses


class WatchStates:
    """Makes the updates that bring the Watch tab into a state.

    Each method returns the values of the canvas, the example's two names, the controls in the order of FIELDS, and the
    conversation; ``of_record`` yields only the first four values, again and again. presets: from
    ``app.example_menu.preset_menu``. offer: from ``app.menu.offer``.
    """

    def __init__(self, presets: Mapping[str, Mapping], offer: Mapping) -> None:
        self.presets, self.offer = presets, offer

    def _named(self, name: str) -> list[str]:
        """Return an example's name for the two components that show it: the note, and the strip of listed examples."""
        return [name, name if name and self.presets[name]["listed"] else ""]

    def of_example(self, name: str, request: gr.Request) -> list:
        """Return the updates that show this example's finished run and its settings; for "" only the name changes."""
        chosen = self.presets.get(name)
        if chosen is None:
            return [gr.skip()] * 2 + self._named("") + [gr.skip()] * (len(FIELDS) + 1)
        earlier = shown(traces.show_example(request.session_hash, TAB, name))
        talk = _talk(request, chosen["models"], chosen["turns"])
        return [*earlier, *self._named(name), *self._set(chosen), talk]

    def of_address(self, request: gr.Request) -> list:
        answer = request.query_params.get("answer")
        if answer:
            return self._shown(traces.show_answer(request.session_hash, TAB, answer), request)
        wish = self._wished(request.query_params)
        if not wish:
            return [gr.skip()] * (5 + len(FIELDS))
        return self._bring(wish, request)

    def of_history(self, request: gr.Request, event: gr.EventData) -> list:
        """Return the run and the control values of the address to which Back or Forward in the browser leads."""
        first = next(iter(self.presets))
        wish = self._wished(link.query_of(event._data)) or {"preset": first}
        return self._bring(wish, request)

    def _bring(self, wish: Mapping, request: gr.Request) -> list:
        """Return the updates that set these control values, and show the finished run of their example if there is
        one."""
        first, name = next(iter(self.presets.values())), wish.get("preset", "")
        earlier = shown(traces.show_example(request.session_hash, TAB, name))
        turns = self.presets[name]["turns"] if name in self.presets else ()
        talk = _talk(request, wish.get("models", ""), turns)
        return [*earlier, *self._named(name), *self._set({**first, **wish}), talk]

    def of_record(self, request: gr.Request, event: gr.EventData) -> Iterator[tuple]:
        """Yield the updates that show the recorded request that the visitor picks, as it grows."""
        name = event._data.get("name") if isinstance(event._data, dict) else None
        for update in emit(growing.show(request.session_hash, TAB, recorded.FOLDER.path, name)):
            yield (*update, *self._named(""))

    def of_file(self, request: gr.Request, event: gr.EventData) -> list:
        """Return the updates that show a visitor's trace file."""
        update = traces.open_file(request.session_hash, TAB, event._data, traces.check)
        return self._shown(update, request)

    def _shown(self, update: Update, request: gr.Request) -> list:
        """Return the updates that show a finished run, and those of its settings that this page has."""
        if update[0] is None:
            return [*shown(update), *[gr.skip()] * (3 + len(FIELDS))]
        trace = read_trace(update[0])
        wish, said = self._wished(link.wish_of(trace, self.offer)), trace.run["prompt"]
        talk = _talk(request, wish.get("models", ""), said.get("messages", ())[:-1])
        return [*shown(update), *self._named(""), *self._set(wish), talk]

    def _wished(self, query: Mapping[str, str]) -> dict:
        return link.read(query, self.presets, self.offer)

    def _set(self, values: dict) -> list:
        """Return values for the controls, in the order of FIELDS; the pair stays if ``values`` has no pair."""
        numbers = (values.get(name, RANGES[name].default) for name in RANGES)
        pair, schema = values.get("pair", gr.skip()), values.get("json_schema", "")
        prompt, heal = values.get("prompt", ""), values.get("heal", False)
        names, models = values.get("python_names", False), values.get("models", "")
        return [prompt, heal, pair, schema, names, *numbers, models]


def _talk(request: gr.Request, models: str, said: Iterable[dict[str, str]]) -> str | dict:
    """Replace the visitor's conversation by that of an example or a trace, if its models converse. Returns the update
    of the section that shows it. said: the turns."""
    if not converses(models):
        return gr.skip()
    own.begin(request.session_hash, said)
    return conversation(request.session_hash)

"""Pieces that the tabs share."""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count

import gradio as gr

from app.controls import RANGES
from app.live import Update
from app.settings import LIMITS

_serial = count(time.time_ns() // 1000)
"""Goes on from where it was when the server begins anew."""

SPARE = 8
"""Room for events beyond those that may run or wait: these are refused, and refusing also takes a moment."""
SLOW = {"show_progress": "hidden", "api_visibility": "private"}
"""Settings of an event that works for a moment, but holds no run."""
QUICK = {"show_progress": "hidden", "api_visibility": "private", "queue": False}
"""Settings of an event that must not wait behind runs."""
EVERY = {**QUICK, "trigger_mode": "multiple"}
"""As QUICK, but each event is sent, even while the previous one waits for its answer."""


def numbered(told: Callable[[], Mapping]) -> str:
    """A value for the page's script. Its number ``n`` is taken before what is told is looked up: of two values that come in
    any order, the one with the higher number holds nothing older (``hearNewest`` in app/web). No two are equal."""
    number = next(_serial)
    return json.dumps({**told(), "n": number})


def status(state: str, message: str = "") -> str:
    """The state of a run for the page's script."""
    return numbered(lambda: {"state": state, "message": message})


def emit(updates: Iterable[Update]) -> Iterator[tuple]:
    """The engine's updates as values of the picture and the status line."""
    yield from never_silent(map(shown, updates))


def never_silent(values: Iterable[tuple]) -> Iterator[tuple]:
    """The values of picture and status line; if there are none, one that changes nothing.

    Gradio empties the outputs of a generator that yields nothing.
    """
    silent = True
    for value in values:
        silent = False
        yield value
    if silent:
        yield gr.skip(), gr.skip()


def shown(update: Update | None) -> tuple:
    """One update as values of the picture and the status line; None changes nothing."""
    if update is None:
        return gr.skip(), gr.skip()
    trace, state, message = update
    return gr.skip() if trace is None else trace, status(state, message)


def state_of(said: object) -> str:
    """The state in which the visitor saw the run; "" if that cannot be read."""
    try:
        return str(json.loads(said)["state"])
    except (TypeError, ValueError, KeyError):
        return ""


def html(script: str, **settings) -> gr.HTML:
    """A piece of the page that its script builds.

    The template is constant, so nothing that passes through the value is ever read as HTML.
    """
    return gr.HTML(
        html_template="<div class='pg-mount'></div>",
        js_on_load=script,
        apply_default_css=False,
        **settings,
    )


def canvas(
    tab: str, hint: str, value: str = "", late: Iterable[str] = ()
) -> tuple[gr.HTML, gr.HTML]:
    """The status line, which shows a hint at first, and the picture.

    late: examples that bring a trace of their own in place of the value when the address names them.
    """
    handed = "{element: element.querySelector('.pg-mount'), props, trigger, watch}"
    said = html(
        f"DraftscopePage.status('{tab}', {handed}); "
        "/* events: 'ask_pause' 'ask_resume' 'ask_stop' */",
        value=status("idle", hint),
        elem_id=f"{tab}-status",
        render=False,
    )
    picture = html(
        f"DraftscopePage.canvas('{tab}', {handed});",
        value=value,
        late=list(late),
        elem_id=f"{tab}-view",
        render=False,
    )
    return said, picture


def example_note(tab: str, menu: dict[str, dict], own: str, prompt: str) -> gr.HTML:
    """What to look for in the example shown; the value is its name.

    menu: from ``app.menu``, the examples that are not listed included. own: the note where the controls hold no
    example's settings; the name is then "". prompt: the element id of the prompt's box.
    """
    told = ("prompt", "turns", "pair", "lanes", "temperature", "models", "json_schema")
    told += ("python_names", "heal", "look_for", "listed")
    return html(
        f"DraftscopePage.exampleNote('{tab}', {{element, props, watch, trigger}}); "
        "/* events: 'edited' */",
        value=next(iter(menu)),
        examples={
            name: {key: entry[key] for key in told if key in entry} for name, entry in menu.items()
        },
        own=own,
        prompt=prompt,
        elem_classes="pg-note-block",
    )


def name_whose(tab: str, changes: list, settings: list, shown: list) -> None:
    """After these changes the browser, without a request, names the example in every component that shows it.

    settings: the name so far, then the controls in the order of the tab's FIELDS. shown: the note first, then the
    components that know listed examples only.
    """
    js = f"(...v) => DraftscopePage.whose('{tab}', {len(shown)}, v)"
    for change in changes:
        change(None, settings, shown, js=js, trigger_mode="multiple", **SLOW)


def tell_controls(tab: str, loaded: Callable, changes: list, controls: list) -> None:
    """After these changes the browser, without a request, learns the values of this tab's controls and marks the
    picture if it shows something else. loaded: the change that brings the values from the address. controls: in the
    order of the tab's FIELDS."""
    for change in (loaded, *changes):
        came = "true" if change is loaded else "false"
        js = f"(...v) => {{ DraftscopePage.controls('{tab}', v, {came}); }}"
        change(None, controls, None, js=js, trigger_mode="multiple", **SLOW)


def lead(parts: list) -> gr.HTML:
    """A sentence some of whose words are explained on hover and focus."""
    return html(
        "DraftscopePage.terms(element, props.parts);", parts=parts, elem_classes="pg-lead-block"
    )


def sampling_controls(
    first: Mapping[str, object], prefix: str = "", more: Callable[[], object] = lambda: None
) -> list[gr.components.Component]:
    """Temperature, top-k, top-p, seed, new tokens: in the order of RANGES. first: the values shown at first.

    more: makes the other controls under "Advanced".
    """
    values = {name: first.get(name, wanted.default) for name, wanted in RANGES.items()}

    def slider(name: str, label: str, info: str, step: float = 1) -> gr.Slider:
        wanted = RANGES[name]
        return gr.Slider(
            wanted.low,
            wanted.high,
            values[name],
            step=step,
            label=label,
            info=info,
            elem_id=prefix + name,
        )

    with gr.Accordion("Temperature and length", open=False, elem_id=f"{prefix}more"):
        temperature = slider(
            "temperature", "Temperature", "0 always takes the likeliest token.", 0.05
        )
        length = slider("max_new_tokens", "New tokens", "The run ends after this many, or earlier.")
    with gr.Accordion("Advanced", open=False, elem_id=f"{prefix}advanced"):
        drawn = "Does nothing at temperature 0. "
        top_k = slider("top_k", "Top-k", drawn + "Keep the k likeliest tokens; 0 keeps all.")
        about = drawn + "Keep the likeliest tokens up to this much probability."
        top_p = slider("top_p", "Top-p", about, 0.01)
        seed = gr.Number(
            values["seed"],
            precision=0,
            label="Seed",
            info=drawn + "The same seed, prompt and settings give the same run.",
            elem_id=prefix + "seed",
        )
        more()
    return [temperature, top_k, top_p, seed, length]


def prompt_box(elem_id: str, value: str) -> gr.Textbox:
    return gr.Textbox(
        value,
        lines=1,
        max_lines=10,
        label="Prompt",
        elem_id=elem_id,
        elem_classes="pg-prompt",
        placeholder="Once upon a time",
    )


def schema_box(elem_id: str) -> gr.Textbox:
    return gr.Textbox(
        "",
        lines=2,
        max_lines=8,
        label="JSON schema",
        elem_id=elem_id,
        info="The text must follow it; empty: any text. Tokens that it forces are drafted for free.",
    )


def names_box(elem_id: str) -> gr.Checkbox:
    return gr.Checkbox(
        False,
        label="Only names that exist",
        elem_id=elem_id,
        info="Prompt and text are Python: a name that a line uses must exist in the text so far.",
    )


def heal_box(elem_id: str) -> gr.Checkbox:
    return gr.Checkbox(
        False,
        label="Heal the prompt’s end",
        elem_id=elem_id,
        info="The prompt may end in the middle of a token: its last tokens are taken back, and the text begins with them.",
    )


def engine_event() -> dict:
    """Settings of an event that advances a run. All such events begin at once; ``app.turns`` decides which run takes
    the next step and which wait in line, and tells each visitor their place."""
    return {
        **SLOW,
        "concurrency_id": "engine",
        "concurrency_limit": LIMITS.running + LIMITS.waiting + SPARE,
        "trigger_mode": "multiple",
    }


def following() -> dict:
    """Settings of an event that shows what another program writes. A few go on at once, and take no run's place."""
    return {
        **SLOW,
        "concurrency_id": "following",
        "concurrency_limit": 8,
        "trigger_mode": "multiple",
    }


def moved(tab: str) -> str:
    """The browser's reaction when the server has sent the state of an address in the browser's history."""
    return f"() => DraftscopePage.moved('{tab}')"


def answered(section: str) -> str:
    """The browser's reaction when the server has answered, well or badly, what the visitor set in this section."""
    return f"() => DraftscopePage.answered('{section}')"


def over(tab: str) -> str:
    """The browser's reaction when an event that advances a run has ended, however it ended."""
    return f"() => DraftscopePage.over('{tab}')"

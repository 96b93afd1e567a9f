"""Components, event settings and helpers that the tabs share."""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count

import gradio as gr

from app.controls import RANGES
from app.live import Update
from app.settings import LIMITS

_serial = count(time.time_ns() // 1000)
"""Numbers that rise, also across restarts of the server, because they begin with the time."""

SPARE = 8
"""Places for events beyond the runs that may advance or wait. They are refused, which also takes a moment."""
SLOW = {"show_progress": "hidden", "api_visibility": "private"}
"""Settings of an event that works for a moment, but advances no run."""
QUICK = {"show_progress": "hidden", "api_visibility": "private", "queue": False}
"""Settings of an event that must not wait behind runs."""
EVERY = {**QUICK, "trigger_mode": "multiple"}
"""The settings of QUICK, but each event is sent, even while the previous one waits for its answer."""


def numbered(told: Callable[[], Mapping]) -> str:
    """Return, as JSON for the page's script, the fields that ``told`` returns and a rising number ``n``. The number is
    taken before ``told`` is called. So if two values come in any order, the one with the higher number holds nothing
    older (``hearNewest`` in app/web)."""
    number = next(_serial)
    return json.dumps({**told(), "n": number})


def status(state: str, message: str = "") -> str:
    """Return the state of a run, as a value of the status line."""
    return numbered(lambda: {"state": state, "message": message})


def emit(updates: Iterable[Update]) -> Iterator[tuple]:
    """Yield the engine's updates as values of the picture and the status line."""
    yield from never_silent(map(shown, updates))


def never_silent(values: Iterable[tuple]) -> Iterator[tuple]:
    """Yield the values of picture and status line; if there are none, yield one that changes nothing.

    Gradio empties the outputs of a generator that yields nothing.
    """
    silent = True
    for value in values:
        silent = False
        yield value
    if silent:
        yield gr.skip(), gr.skip()


def shown(update: Update | None) -> tuple:
    """Return one update as values of the picture and the status line; None changes nothing."""
    if update is None:
        return gr.skip(), gr.skip()
    trace, state, message = update
    return gr.skip() if trace is None else trace, status(state, message)


def state_of(said: object) -> str:
    """Return the state of the run in this value of the status line; "" if it cannot be read."""
    try:
        return str(json.loads(said)["state"])
    except (TypeError, ValueError, KeyError):
        return ""


def html(script: str, **settings) -> gr.HTML:
    """Return a component that the page's script builds.

    The template is constant, so no text in the value is ever read as HTML.
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
    """Return the status line, which shows a hint at first, and the picture.

    value: the picture's first trace. late: examples whose own trace replaces it when the address names them.
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
    """Return the note on what to look for in the example on the screen; its value is the example's name.

    menu: all examples, from ``app.menu``. own: the note if the controls hold no example's settings, when the name is
    "". prompt: the element id of the prompt's box.
    """
    fields = ("prompt", "turns", "pair", "lanes", "temperature", "models", "json_schema")
    fields += ("python_names", "heal", "look_for", "listed")
    return html(
        f"DraftscopePage.exampleNote('{tab}', {{element, props, watch, trigger}}); "
        "/* events: 'edited' */",
        value=next(iter(menu)),
        examples={
            name: {key: entry[key] for key in fields if key in entry}
            for name, entry in menu.items()
        },
        own=own,
        prompt=prompt,
        elem_classes="pg-note-block",
    )


def name_whose(tab: str, changes: list, settings: list, shown: list) -> None:
    """Let the browser, after these changes and without a request, name the example in every component that shows it.

    settings: the component with the current name, then the controls in the order of the tab's FIELDS. shown: the note,
    then the components that show listed examples only.
    """
    js = f"(...v) => DraftscopePage.whose('{tab}', {len(shown)}, v)"
    for change in changes:
        change(None, settings, shown, js=js, trigger_mode="multiple", **SLOW)


def tell_controls(tab: str, loaded: Callable, changes: list, controls: list) -> None:
    """Let the browser, after these changes and without a request, read the values of this tab's controls, and mark the
    picture if it shows another run. loaded: the change that brings the values from the address. controls: in the order
    of the tab's FIELDS."""
    for change in (loaded, *changes):
        came = "true" if change is loaded else "false"
        js = f"(...v) => {{ DraftscopePage.controls('{tab}', v, {came}); }}"
        change(None, controls, None, js=js, trigger_mode="multiple", **SLOW)


def lead(parts: list) -> gr.HTML:
    """Return a sentence with explanations of some words, on hover and focus. parts: texts, and [word, explanation]."""
    return html(
        "DraftscopePage.terms(element, props.parts);", parts=parts, elem_classes="pg-lead-block"
    )


def sampling_controls(
    first: Mapping[str, object], prefix: str = "", more: Callable[[], object] = lambda: None
) -> list[gr.components.Component]:
    """Return the controls temperature, top-k, top-p, seed and new tokens, in the order of RANGES.

    first: their first values. prefix: of their element ids. more: makes the other controls under "Advanced".
    """
    values = {name: first.get(name, bounds.default) for name, bounds in RANGES.items()}

    def slider(name: str, label: str, info: str, step: float = 1) -> gr.Slider:
        bounds = RANGES[name]
        return gr.Slider(
            bounds.low,
            bounds.high,
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
    the next step and which runs wait in line."""
    return {
        **SLOW,
        "concurrency_id": "engine",
        "concurrency_limit": LIMITS.running + LIMITS.waiting + SPARE,
        "trigger_mode": "multiple",
    }


def following() -> dict:
    """Settings of an event that follows a record of another program. A few go on at once, and take no run's place."""
    return {
        **SLOW,
        "concurrency_id": "following",
        "concurrency_limit": 8,
        "trigger_mode": "multiple",
    }


def moved(tab: str) -> str:
    """Return the script that runs in the browser once the server has sent the state of an address in its history."""
    return f"() => DraftscopePage.moved('{tab}')"


def answered(section: str) -> str:
    """Return the script that runs in the browser once a change in this section has succeeded or failed."""
    return f"() => DraftscopePage.answered('{section}')"


def over(tab: str) -> str:
    """Return the script that runs in the browser once an event that advances a run has ended or failed."""
    return f"() => DraftscopePage.over('{tab}')"

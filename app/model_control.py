"""The control *Model*: the choice of a family of models, a note on it, and a button that fetches missing models."""

import gradio as gr

from app import words
from app.fetching import fetching
from app.parts import QUICK, html, numbered
from app.pictures import prompt_picture
from engine.parts.size_limits import SPARED
from engine.scenes import brought
from presets import families
from presets.families import converses, title
from presets.fetched import sources


class ModelControl:
    """The choice of a family, whose value is the family's name, and the note below it. While models are being fetched,
    the browser asks again and again how far that is, so no event waits for it."""

    def __init__(self, tab: str, elem_id: str, value: str = "", prompt: str = "") -> None:
        """prompt: the element id of the box of a prompt that may hold a picture; "" for no such box."""
        self.choice = gr.Radio(
            [(title(name), name) for name in families()],
            value=value,
            label="Model",
            elem_id=elem_id,
        )
        self.note = html(
            f"DraftscopePage.modelNote('{tab}', {{element: element.querySelector('.pg-mount'), "
            "props, trigger, watch}); /* events: 'look' 'fetch' 'cancel' */",
            value=_shown(""),
            about={name: words.ABOUT_MODELS.get(name, "") for name in families()},
            sizes={name: _sizes(name) for name in families() if name in sources()},
            elem_id=f"{elem_id}-note",
            elem_classes="pg-model-note",
        )
        if prompt:
            handed = "{element: element.querySelector('.pg-mount'), props, server}"
            html(
                f"DraftscopePage.pictureAsk('{tab}', {handed});",
                server_functions=[prompt_picture],
                prompt=prompt,
                limit=brought.MOST_BYTES,
                elem_id=f"{elem_id}-picture",
            )

    def wire(self, conversation: gr.Accordion | None = None) -> None:
        """Attach the events. conversation: the section that opens when a model that converses is chosen."""
        if conversation is None:
            self.note.look(_look, None, self.note, **QUICK)
        else:
            self.note.look(_look_and_talk, None, [self.note, conversation], **QUICK)
        self.note.fetch(_fetch, None, self.note, **QUICK)
        self.note.cancel(_cancel, None, self.note, **QUICK)


def _sizes(name: str) -> dict[str, str]:
    """Return the name and licence of this family's target, and the sizes of its download, files and memory, in
    words."""
    source = sources()[name]
    memory = 4 * source.parameters / SPARED
    return {
        "name": source.name,
        "licence": source.licence,
        "download": f"{source.wheel.nbytes / 1e6:.0f} MB",
        "disk": f"{source.disk_bytes / 1e9:.2f} GB",
        "memory": f"{memory / 1e9:.1f} GB",
    }


def _shown(name: str) -> str:
    return numbered(lambda: {"models": name, **fetching.told(name)})


def _wish(event: gr.EventData) -> str:
    """Return the family that the event names; "" if this page does not offer it."""
    name = event._data.get("models") if isinstance(event._data, dict) else None
    return name if isinstance(name, str) and name in families() else ""


def _look(event: gr.EventData) -> str:
    name = _wish(event)
    fetching.open(name)
    return _shown(name)


def _look_and_talk(event: gr.EventData) -> list:
    """Return the note as ``_look`` does, and an update that opens the conversation if its model was just chosen."""
    chosen = isinstance(event._data, dict) and event._data.get("chosen") is True
    opens = chosen and converses(_wish(event))
    return [_look(event), gr.Accordion(open=True) if opens else gr.skip()]


def _fetch(request: gr.Request, event: gr.EventData) -> str:
    name = _wish(event)
    fetching.fetch(name, request.session_hash)
    return _shown(name)


def _cancel(request: gr.Request, event: gr.EventData) -> str:
    name = _wish(event)
    fetching.cancel(name, request.session_hash)
    return _shown(name)

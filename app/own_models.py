"""The section "Conversation and own models" of Watch: talk to a chat model, end texts early, bring a target and a
draft.

The choices made here hold for Watch and Compare during this visit. They are kept on the server (``app.own``), so that
no address and no trace carries them.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence

import gradio as gr

from app import live, telling
from app.fence import Maker
from app.inspected import inspected
from app.own import Choice, own, page_converses
from app.parts import QUICK, SLOW, answered, html, numbered
from app.seats import Job
from engine.core.ending import StopStrings, typed
from engine.errors import UserError
from engine.printable import one_line
from presets import families
from presets.families import converses as family_converses

GONE = (
    "The models and the conversation that you had on this page before are no longer kept; the next "
    "run uses this page’s own models."
)
MOST_SYSTEM = 1000  # characters of a system turn


class OwnSection:
    """The components of the section; ``wire`` attaches their events."""

    def __init__(self) -> None:
        talks = page_converses() or any(map(family_converses, families()))
        titles = ["Conversation"] * talks + ["Own models"] * bool(own.allowed)
        title = " and ".join(titles).capitalize()
        with gr.Accordion(title, open=False, elem_id="own", visible=bool(titles)) as self.fold:
            # a value that arrives while the section is folded replaces all properties, so there is only the value
            self.view = html(
                "DraftscopePage.ownModels({element: element.querySelector('.pg-mount'), props, "
                f"trigger, watch}}, {json.dumps(offer())}); "
                "/* events: 'bring' 'put_away' 'adjust' 'fresh' 'own_sampling' */",
                value=shown(""),
                elem_id="own-models",
            )

    def wire(self, numbers: list, runs: list) -> None:
        """Attach the events. numbers: the controls of temperature, top-k and top-p. runs: the events that advance
        runs."""
        busy = {**SLOW, "concurrency_id": "opening", "concurrency_limit": 2}
        self.view.bring(_load, None, self.view, **busy)
        for event, change in {"put_away": _unload, "adjust": _set, "fresh": _fresh}.items():
            changed = getattr(self.view, event)(change, None, self.view, **QUICK)
            changed.then(None, js=answered("own-models"))
            changed.failure(None, js=answered("own-models"))
        self.view.own_sampling(_sampling, None, numbers, **QUICK)
        for run in runs:
            run.then(_answered, None, self.view, **SLOW)

    def come_back(self, returned: Callable[..., gr.events.Dependency]) -> None:
        """Bring the visitor's choice back to a page that was loaded anew. returned: the event that such a
        page sends if it had a choice."""
        returned(_returned, None, [self.fold, self.view], **QUICK)

    def follow(self, run: gr.events.Dependency) -> None:
        """Show the visitor's current choice once this event of another tab has ended."""
        run.then(_kept, None, self.view, **QUICK)


def offer() -> dict:
    """Return {"bring": whether visitors may bring models, "allowed": the patterns of allowed ones, [] for all}."""
    patterns = [pattern for pattern in own.allowed.patterns if pattern not in ("*", "/")]
    return {"bring": bool(own.allowed), "allowed": patterns}


def shown(
    session: str, task: str = "", share: float = 0.0, problem: str = "", seen: Sequence[str] = ()
) -> str:
    """Return the section's value for this visitor: the loaded pair, the conversation, and the progress of an opening.
    task, share: the current task of the opening, and how much of it is done. problem: a sentence. seen: sentences about
    the files of the models."""

    def told() -> dict:
        choice = own.read(session)
        return {
            "token": choice.token if choice.held else "",
            "loaded": choice.told if choice.paths else None,
            "missing": choice.missing,
            "converses": converses(choice),
            "chat": choice.chat,
            "system": choice.system,
            "turns": choice.turns,
            "stop": list(choice.stop),
            "task": task,
            "share": share,
            "problem": one_line(problem),
            "inspected": [one_line(line) for line in seen or choice.told.get("inspected", ())],
        }

    return numbered(told)


def still_there(make: Maker, session: str, seen: object) -> Maker:
    """Return ``make`` with a check before it: it raises UserError if the choice that the visitor sees is gone. seen:
    the section's value in the browser."""

    def checked(values: Mapping[str, object]) -> Job:
        refuse_gone(session, seen)
        return make(values)

    return checked


def refuse_gone(session: str, seen: object) -> None:
    """Raise UserError, which names the loss, if the visitor still sees models or a conversation that the server no
    longer keeps. seen: the section's value in the browser."""
    try:
        value = json.loads(seen)  # type: ignore[arg-type]
        token, loaded, turns = value["token"], value["loaded"], len(value["turns"])
    except (TypeError, ValueError, KeyError):
        return
    if not isinstance(token, str) or not token or own.holds(session, token):
        return
    gone = [one_line(str(loaded.get("target", "")))[:80]] if isinstance(loaded, dict) else []
    gone += ["the conversation"] if turns else []
    gone += [] if gone else ["what was set under “Conversation and own models”"]
    raise UserError(
        f"No longer here: {' and '.join(gone)}. The connection was away for too long, or the server began "
        "anew; the next run uses this page’s own models, without a conversation."
    )


def converses(choice: Choice) -> bool:
    """Return whether the target of this choice has a chat template."""
    return page_converses() if choice.paths is None else bool(choice.told.get("chat"))


def _load(request: gr.Request, event: gr.EventData) -> Iterator[str]:
    wish = event._data if isinstance(event._data, dict) else {}
    session = request.session_hash

    def work() -> dict:
        return own.load(session, wish.get("target"), wish.get("draft"), telling.tell.get())

    yield shown(session, "Looking at it")
    try:
        for task, share in telling.heard(work):
            yield shown(session, task, share)
    except UserError as error:
        seen = inspected(wish.get("target"), wish.get("draft"), own.allowed)
        yield shown(session, problem=str(error), seen=seen)
        return
    asks = ", ".join(own.read(session).told.get("left_out", ()))
    problem = f"The model's generation config asks for {asks}, which this page leaves out."
    yield shown(session, problem=problem if asks else "")


def _unload(request: gr.Request) -> str:
    own.leave(request.session_hash)
    return shown(request.session_hash)


def _set(request: gr.Request, event: gr.EventData) -> str:
    """Set whether the prompt is a turn of a conversation, the system turn and the stop strings."""
    settings = event._data if isinstance(event._data, dict) else {}
    session = request.session_hash
    choice, stop = own.of(session), settings.get("stop")
    given_stop = [string for string in stop if string] if isinstance(stop, list) else []
    strings = [typed(string) if isinstance(string, str) else string for string in given_stop]
    try:
        StopStrings(None, strings)
    except UserError as error:
        return shown(session, problem=str(error))
    choice.stop = tuple(strings)
    system = settings.get("system")
    if isinstance(system, str) and len(system) > MOST_SYSTEM:
        return shown(session, problem=f"A system turn has at most {MOST_SYSTEM:,} characters.")
    if isinstance(system, str) and system.strip() != choice.system:
        choice.system, choice.turns = system.strip(), []
    choice.chat = settings.get("chat") is True and converses(choice)
    return shown(session)


def _fresh(request: gr.Request) -> str:
    own.read(request.session_hash).turns = []
    return shown(request.session_hash)


def _sampling(request: gr.Request) -> list:
    """Return temperature, top-k and top-p from the model's own generation config, within the bounds of the controls."""
    from app.controls import RANGES

    sampling = own.read(request.session_hash).told.get("sampling", {})
    names = ("temperature", "top_k", "top_p")
    return [RANGES[name].clamp(sampling[name]) if name in sampling else gr.skip() for name in names]


def _returned(request: gr.Request, event: gr.EventData) -> list:
    """Return the choice that the page had before it was loaded anew, or a sentence that the choice is gone."""
    token = event._data.get("token") if isinstance(event._data, dict) else None
    choice = own.bring_back(request.session_hash, token) if isinstance(token, str) else None
    problem = "" if choice else GONE
    return [gr.Accordion(open=True), shown(request.session_hash, problem=problem)]


def _kept(request: gr.Request) -> str:
    return shown(request.session_hash)


def _answered(request: gr.Request) -> str:
    session = request.session_hash
    own.answered(session, live.finished(session, "watch"))
    return shown(session)

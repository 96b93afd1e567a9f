"""Keeps visitors' own models and conversations: the chosen pairs, the turns, and the models in memory.

A visitor names a target and perhaps a draft. A model that the host allows is opened (``engine.parts.size_limits``),
shared by all visitors who chose it, and put away once no visitor has it chosen. Without own models the page's target
converses, if it has a chat template.
"""

import json
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from app.inspected import inspected
from app.menu import lacking
from app.settings import LIMITS, Limits, allowed_models, model_paths
from app.visitors import VISITORS, anyone, first_to_go
from engine.chat.turns import has_template
from engine.errors import UserError
from engine.methods import drafters
from engine.model.checkpoint_rules import unapplied
from engine.model.generation import own_sampling
from engine.model.language_model import LanguageModel
from engine.parts.files import needed_config
from engine.parts.hub import name_of
from engine.parts.loading import ModelPaths, load_models
from engine.parts.models import open_model
from engine.parts.mtp_fields import own_layer
from engine.parts.size_limits import Allowed, admit, allowed_engine
from engine.progress import Tell, silent
from engine.run import RunRequest
from engine.serving.engine_address import is_served, read
from engine.serving.served_target import READS_ITSELF, reads_itself
from presets.families import converses

MOST_VISITORS = 500
NO_TOKENIZER = "A model behind an engine needs a draft here, whose tokenizer is its own: name one under “Draft”."


@dataclass
class Choice:
    """One visitor's settings.

    paths: the chosen pair; None for the page's own models. chat: whether a prompt is the next turn of the conversation.
    system: the system turn; "" for none. turns: the turns of user and assistant so far. stop: the stop strings. told:
    the details of the loaded pair, for the page.
    """

    paths: ModelPaths | None = None
    chat: bool = False
    system: str = ""
    turns: list[dict[str, str]] = field(default_factory=list)
    stop: tuple[str, ...] = ()
    told: dict = field(default_factory=dict)
    token: str = field(default_factory=lambda: secrets.token_hex(8))
    """Names this choice to the browser, which sends the token back with every run, so a lost choice is noticed."""
    touched: float = field(default_factory=time.monotonic)
    left: bool = False
    """Whether the connection to the browser has ended since this choice was last used. A browser that was only cut off
    comes back with the same session, so the choice waits for it."""

    @property
    def held(self) -> bool:
        """Whether this choice holds anything that its visitor would miss."""
        return bool(self.paths or self.chat or self.system or self.turns or self.stop)

    @property
    def said(self) -> list[dict[str, str]]:
        """The conversation so far, the system turn included."""
        return [*([{"role": "system", "content": self.system}] if self.system else []), *self.turns]

    def asking(self, prompt: str) -> list[dict[str, str]]:
        """Return the turns that a run with this prompt answers. If the prompt repeats the last user turn unchanged,
        that turn is answered anew: repeated after its answer, it would let drafters that copy write the same answer
        again."""
        turn, said = {"role": "user", "content": prompt}, self.said
        return said[:-1] if said[-2:-1] == [turn] else [*said, turn]

    @property
    def missing(self) -> dict[str, str]:
        """Key of each drafter that cannot run with the visitor's own pair -> why; {} without such a pair."""
        if self.paths is None:
            return {}
        lacks = {key: lacking(cls.needs, self.paths.parts) for key, cls in drafters().items()}
        reasons = {
            key: f"needs {parts}, which is not loaded" for key, parts in lacks.items() if parts
        }
        if is_served(self.paths.target):
            reasons |= {key: READS_ITSELF for key, cls in drafters().items() if reads_itself(cls)}
        return reasons


class OwnModels:
    """The choices of all visitors, and the models that are resident for them."""

    def __init__(
        self,
        allowed: Allowed | None = None,
        limits: Limits = LIMITS,
        here: Callable[[str], bool] = anyone,
    ) -> None:
        """here: returns whether a visitor has the page open."""
        self._here = here
        self.allowed = allowed_models() if allowed is None else allowed
        self._limits = limits
        self._choices: dict[str, Choice] = {}
        self._resident: dict[str, float] = {}
        """Folder of each model that is held in memory for visitors -> when it was last chosen."""
        self._opening: list[Mapping[str, str]] = []
        """The pairs that are being opened, each as role -> folder."""
        self._lock = threading.Lock()

    def of(self, session: str) -> Choice:
        """Return the visitor's choice, empty at first and kept from now on, so that it can be changed."""
        with self._lock:
            return self._touched(session) or self._keep(session, Choice())

    def read(self, session: str) -> Choice:
        """Return the visitor's choice; without one, an empty choice that is not kept."""
        with self._lock:
            return self._touched(session) or Choice()

    def _touched(self, session: str) -> Choice | None:
        choice = self._choices.get(session)
        if choice is not None:
            choice.touched, choice.left = time.monotonic(), False
        return choice

    def _keep(self, session: str, choice: Choice) -> Choice:
        """Keep this choice. If there are too many choices, drop first those of absent visitors, then empty ones."""
        self._choices[session] = choice
        while len(self._choices) > MOST_VISITORS:
            del self._choices[first_to_go(self._choices, session, self._here, self._worth)]
        return choice

    def _worth(self, session: str) -> tuple[bool, float]:
        choice = self._choices[session]
        return choice.held, choice.touched

    def load(self, session: str, target: object, draft: object, tell: Tell = silent) -> dict:
        """Open the pair for this visitor. Returns what the page says about the pair. Raises UserError."""
        if not self.allowed:
            raise UserError("This page opens no other models; its host has not allowed any.")
        wishes = {"target": target, "draft": draft}
        folders: dict[str, str] = {}
        choice = self.of(session)
        choice.paths, choice.chat = None, False
        with self._being_opened(folders):
            for role, wish in wishes.items():
                if role == "draft" and not wish:
                    continue
                engine = allowed_engine(wish, self.allowed) if role == "target" else None
                folder = engine or str(admit(wish, self.allowed, tell).folder)  # type: ignore[arg-type]
                with self._lock:
                    folders[role] = folder
                self._make_room()
                if engine and not draft:
                    raise UserError(NO_TOKENIZER)
                if engine:
                    continue
                tell(f"Loading the {role}", 0.5 if role == "target" else 0.9)
                model = self._open(folders)
            choice = self.of(session)
            choice.paths, choice.turns = _paths(folders), []
            choice.chat, choice.told = has_template(model), told(model, choice.paths)
            choice.told["inspected"] = inspected(target, draft, self.allowed)
        return choice.told

    @contextmanager
    def _being_opened(self, found: Mapping[str, str]) -> Iterator[None]:
        """Within this context the models in these folders are not put away. Afterwards they are, unless they were
        chosen. found: role -> folder, and may grow within the context."""
        with self._lock:
            self._opening.append(found)
        try:
            yield
        finally:
            with self._lock:
                self._opening = [pair for pair in self._opening if pair is not found]
                unchosen = any(folder not in self._chosen() for folder in found.values())
            if unchosen:
                self._release()

    def _open(self, found: Mapping[str, str]) -> LanguageModel:
        """Open the models in these folders, and return the target. found: role -> folder."""
        with self._lock:
            for folder in found.values():
                if not is_served(folder):
                    self._resident[folder] = time.monotonic()
        return load_models(_paths(found), {role: role for role in found if role != "target"}).target

    def _make_room(self) -> None:
        """Make room for another model: put away models that nobody has chosen, then models of visitors who have left.
        Raises UserError if all places are still taken."""
        self._release()
        if self._too_many():
            self._forget(lambda choice: choice.left and choice.paths is not None)
            self._release()
        if self._too_many():
            raise UserError(
                f"{self._limits.resident_models} models are in memory for visitors, as many as "
                "this page holds; try again when somebody has put theirs away."
            )

    def _too_many(self) -> bool:
        with self._lock:
            return len({*self._resident, *self._chosen()}) > self._limits.resident_models

    def _chosen(self) -> set[str]:
        """Return the folders of the models that visitors have chosen or that are being opened for them."""
        pairs = [choice.paths for choice in self._choices.values() if choice.paths is not None]
        folders = {folder for pair in pairs for folder in (pair.target, *pair.parts.values())}
        folders.update(*(opening.values() for opening in self._opening))
        return {folder for folder in folders if not is_served(folder)}

    def _forget(self, which: Callable[[Choice], bool]) -> None:
        with self._lock:
            for session in [visitor for visitor, choice in self._choices.items() if which(choice)]:
                del self._choices[session]

    def _release(self) -> None:
        """Put away the models that nobody has chosen, and those chosen only by visitors who have been away for long."""
        oldest = time.monotonic() - self._limits.kept_seconds
        self._forget(lambda choice: choice.paths is not None and choice.touched < oldest)
        with self._lock:
            chosen = self._chosen()
            for folder in [resident for resident in self._resident if resident not in chosen]:
                del self._resident[folder]
                open_model.forget(folder)

    def resident(self) -> list[str]:
        """Return the folders of the models that are held in memory for visitors."""
        with self._lock:
            return list(self._resident)

    def leave(self, session: str) -> None:
        """Drop the visitor's choice: the visitor wants the page's own models again."""
        with self._lock:
            self._choices.pop(session, None)
        self._release()

    def cut_off(self, session: str) -> None:
        """Note that the connection to the visitor's browser has ended: the tab was closed, or the network broke."""
        with self._lock:
            if session in self._choices:
                self._choices[session].left = True

    def sweep(self) -> None:
        """Drop the choices of visitors who left and did not come back in time."""
        oldest = time.monotonic() - self._limits.kept_seconds
        self._forget(lambda choice: choice.left and choice.touched < oldest)
        self._release()

    def bring_back(self, session: str, token: str) -> Choice | None:
        """Copy the choice of this token for the session of a page that was loaded anew, and return the copy; None if
        the choice is gone. The choice itself stays, because the tab may have been duplicated."""
        with self._lock:
            old = next((one for one in self._choices.values() if one.token == token), None)
            if old is None:
                return None
            values = {one.name: getattr(old, one.name) for one in fields(Choice)}
            fresh = ("token", "touched", "left")
            copied = Choice(**{name: value for name, value in values.items() if name not in fresh})
            return self._keep(session, copied)

    def name_of(self, session: str) -> str:
        """Return a text that identifies the visitor's own pair; "" for the page's own models."""
        with self._lock:
            choice = self._choices.get(session)
            return "" if choice is None or choice.paths is None else str(choice.paths)

    def holds(self, session: str, token: str) -> bool:
        """Return whether this visitor still has the choice with this token."""
        with self._lock:
            choice = self._choices.get(session)
            return choice is not None and choice.token == token

    def applied(self, session: str, request: RunRequest, talk: bool = True) -> RunRequest:
        """Return the request with this visitor's models, conversation and stop strings.

        talk: the prompt is the next turn of the visitor's conversation, if there is one.
        """
        choice = self.read(session)
        if request.messages is not None:  # a family that converses was asked for
            (turn,) = request.messages
            turns = choice.asking(turn["content"]) if talk else request.messages
            return replace(request, messages=turns, stop=choice.stop or request.stop)
        if request.models.target != model_paths().target:
            return request  # another embedded family was asked for
        request = replace(
            request, models=choice.paths or request.models, stop=choice.stop or request.stop
        )
        if not (talk and choice.chat):
            return request
        return replace(request, prompt="", messages=choice.asking(request.prompt))

    def begin(self, session: str, said: Iterable[dict[str, str]]) -> None:
        """Replace the visitor's conversation by these turns."""
        said = list(said)
        choice = self.of(session) if said else self.read(session)
        choice.system = next((turn["content"] for turn in said if turn["role"] == "system"), "")
        choice.turns = [turn for turn in said if turn["role"] != "system"]

    def answered(self, session: str, trace: str | None) -> None:
        """Add the answer of the visitor's ended run to the conversation as its next turn, if the run answered it."""
        lines = (trace or "").rstrip("\n").split("\n")
        if len(lines) < 2:
            return
        run, summary = json.loads(lines[0]), json.loads(lines[-1])
        messages, family = run["prompt"].get("messages"), run.get("family", "")
        choice = self.of(session) if converses(family) else self.read(session)
        if not (choice.chat or converses(family)):
            return
        if (
            not messages
            or summary["kind"] != "summary"
            or messages != choice.asking(messages[-1]["content"])
        ):
            return
        text = summary["text"]
        for end in self._ends(choice, family):
            text = text.removesuffix(end)
        turns = [turn for turn in messages if turn["role"] != "system"]
        # Templates write the space between the turn's beginning and an answer themselves, if there is one.
        choice.turns = [*turns, {"role": "assistant", "content": text.removeprefix(" ")}]

    def _ends(self, choice: Choice, family: str) -> Iterable[str]:
        if choice.paths is not None and not family:
            return choice.told["ends"]
        return special_texts(load_models(model_paths(family), {}).target)


def _paths(found: Mapping[str, str]) -> ModelPaths:
    parts = {k: v for k, v in found.items() if k != "target"}
    return ModelPaths(found["target"], own_layer(found["target"]) | parts)


def page_converses() -> bool:
    """Return whether the page's own target has a chat template, from its files alone."""
    folder, config = Path(model_paths().target), "tokenizer_config.json"
    if (folder / "chat_template.jinja").is_file():
        return True
    return (folder / config).is_file() and "chat_template" in needed_config(folder, config)


def special_texts(model: LanguageModel) -> list[str]:
    """Return the texts of the special tokens, one of which may end an answer."""
    tokenizer = model.tokenizer
    specials = [tokenizer.decode([token]) for token in tokenizer.all_special_ids]
    return [token for token in {*specials, *tokenizer.get_added_vocab()} if token]


def told(model: LanguageModel, paths: ModelPaths) -> dict:
    """Return the details of a loaded pair that the page shows."""
    config = model.model.generation_config
    return {
        "target": model.name,
        "served": read(paths.target).place if is_served(paths.target) else "",
        "parameters": model.parameters,
        "context": model.max_context,
        "draft": name_of(paths.parts.get("draft", "")),
        "chat": has_template(model),
        "sampling": own_sampling(model.model),
        "ends": special_texts(model),
        "left_out": [] if config is None else unapplied(config, cuts=False),
    }


own = OwnModels(here=VISITORS.here)

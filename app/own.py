"""Visitors' own models and conversations: which pair each has chosen, what was said, and what is resident.

A visitor names a target and perhaps a draft. A model that the host allows is opened (``engine.parts.size_limits``),
shared by all who chose it, and put away once no visitor has it chosen. Without own models the page's target converses,
if it has a chat template.
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
    """One visitor's settings. paths: None for the page's own models. chat: the prompt is the next turn of the
    conversation. system: the turn before all others; "" for none. turns: those of user and assistant so far. told: the
    page's details of the loaded pair."""

    paths: ModelPaths | None = None
    chat: bool = False
    system: str = ""
    turns: list[dict[str, str]] = field(default_factory=list)
    stop: tuple[str, ...] = ()
    told: dict = field(default_factory=dict)
    token: str = field(default_factory=lambda: secrets.token_hex(8))
    """Names this choice to the browser, which sends it back with every run: a choice that is gone is missed."""
    touched: float = field(default_factory=time.monotonic)
    left: bool = False
    """Whether the connection to the browser has ended since this choice was last used. A browser that was only cut off
    comes back with the same session, so the choice waits for it."""

    @property
    def held(self) -> bool:
        """Whether anything would be missed if this choice were forgotten."""
        return bool(self.paths or self.chat or self.system or self.turns or self.stop)

    @property
    def said(self) -> list[dict[str, str]]:
        """The conversation so far, the system turn included."""
        return [*([{"role": "system", "content": self.system}] if self.system else []), *self.turns]

    def asking(self, prompt: str) -> list[dict[str, str]]:
        """The turns that a run with this prompt answers. The last turn, said again unchanged, is answered anew: a copy
        of it behind its own answer would let drafters that copy write that answer again."""
        turn, said = {"role": "user", "content": prompt}, self.said
        return said[:-1] if said[-2:-1] == [turn] else [*said, turn]

    @property
    def missing(self) -> dict[str, str]:
        """Why drafters cannot run with the visitor's own pair, by key; {} without such a pair."""
        if self.paths is None:
            return {}
        found = {key: lacking(cls.needs, self.paths.parts) for key, cls in drafters().items()}
        told = {key: f"needs {parts}, which is not loaded" for key, parts in found.items() if parts}
        if is_served(self.paths.target):
            told |= {key: READS_ITSELF for key, cls in drafters().items() if reads_itself(cls)}
        return told


class OwnModels:
    """The choices of all visitors, and the models that are resident for them."""

    def __init__(
        self,
        allowed: Allowed | None = None,
        limits: Limits = LIMITS,
        here: Callable[[str], bool] = anyone,
    ) -> None:
        """here: whether a visitor has the page open."""
        self._here = here
        self.allowed = allowed_models() if allowed is None else allowed
        self._limits = limits
        self._choices: dict[str, Choice] = {}
        self._resident: dict[str, float] = {}
        """Folder of each model that is held for visitors -> when it was last chosen."""
        self._opening: list[Mapping[str, str]] = []
        """By role, the folders of each pair that is being opened."""
        self._lock = threading.Lock()

    def of(self, session: str) -> Choice:
        """The visitor's choice, empty at first, to be changed."""
        with self._lock:
            return self._touched(session) or self._keep(session, Choice())

    def read(self, session: str) -> Choice:
        """The visitor's choice; an empty one, which is not kept, where there is none."""
        with self._lock:
            return self._touched(session) or Choice()

    def _touched(self, session: str) -> Choice | None:
        choice = self._choices.get(session)
        if choice is not None:
            choice.touched, choice.left = time.monotonic(), False
        return choice

    def _keep(self, session: str, choice: Choice) -> Choice:
        """Whoever is not here gives up theirs first, then whoever chose nothing."""
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
        found: dict[str, str] = {}
        choice = self.of(session)
        choice.paths, choice.chat = None, False
        with self._being_opened(found):
            for role, wish in wishes.items():
                if role == "draft" and not wish:
                    continue
                engine = allowed_engine(wish, self.allowed) if role == "target" else None
                folder = engine or str(admit(wish, self.allowed, tell).folder)  # type: ignore[arg-type]
                with self._lock:
                    found[role] = folder
                self._make_room()
                if engine and not draft:
                    raise UserError(NO_TOKENIZER)
                if engine:
                    continue
                tell(f"Loading the {role}", 0.5 if role == "target" else 0.9)
                model = self._open(found)
            choice = self.of(session)
            choice.paths, choice.turns = _paths(found), []
            choice.chat, choice.told = has_template(model), told(model, choice.paths)
            choice.told["inspected"] = inspected(target, draft, self.allowed)
        return choice.told

    @contextmanager
    def _being_opened(self, found: Mapping[str, str]) -> Iterator[None]:
        """Nobody puts these folders away until they are chosen; where that fails, they go."""
        with self._lock:
            self._opening.append(found)
        try:
            yield
        finally:
            with self._lock:
                self._opening = [one for one in self._opening if one is not found]
                unchosen = any(folder not in self._chosen() for folder in found.values())
            if unchosen:
                self._release()

    def _open(self, found: Mapping[str, str]) -> LanguageModel:
        """The target."""
        with self._lock:
            for folder in found.values():
                if not is_served(folder):
                    self._resident[folder] = time.monotonic()
        return load_models(_paths(found), {role: role for role in found if role != "target"}).target

    def _make_room(self) -> None:
        """Those who have left give their places up first. Raises UserError where all places are taken."""
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
        """The folders that visitors have chosen, and those that are being opened for them."""
        pairs = [choice.paths for choice in self._choices.values() if choice.paths is not None]
        folders = {folder for one in pairs for folder in (one.target, *one.parts.values())}
        folders.update(*(found.values() for found in self._opening))
        return {folder for folder in folders if not is_served(folder)}

    def _forget(self, which: Callable[[Choice], bool]) -> None:
        with self._lock:
            for session in [one for one, choice in self._choices.items() if which(choice)]:
                del self._choices[session]

    def _release(self) -> None:
        """Put away the models that nobody has chosen, and those chosen only by visitors who have been away for long."""
        oldest = time.monotonic() - self._limits.kept_seconds
        self._forget(lambda choice: choice.paths is not None and choice.touched < oldest)
        with self._lock:
            chosen = self._chosen()
            for folder in [one for one in self._resident if one not in chosen]:
                del self._resident[folder]
                open_model.forget(folder)

    def resident(self) -> list[str]:
        """The folders of the models that are held for visitors."""
        with self._lock:
            return list(self._resident)

    def leave(self, session: str) -> None:
        """The visitor wants the page's own models again."""
        with self._lock:
            self._choices.pop(session, None)
        self._release()

    def cut_off(self, session: str) -> None:
        """The connection to the visitor's browser has ended: the tab was closed, or the network broke."""
        with self._lock:
            if session in self._choices:
                self._choices[session].left = True

    def sweep(self) -> None:
        """Forget those who left and did not come back in time."""
        oldest = time.monotonic() - self._limits.kept_seconds
        self._forget(lambda choice: choice.left and choice.touched < oldest)
        self._release()

    def bring_back(self, session: str, token: str) -> Choice | None:
        """Give this session, of a page that was loaded anew, what the choice of this token holds; None if it is gone. The
        choice itself stays, for the tab may have been duplicated."""
        with self._lock:
            old = next((one for one in self._choices.values() if one.token == token), None)
            if old is None:
                return None
            told = {one.name: getattr(old, one.name) for one in fields(Choice)}
            fresh = ("token", "touched", "left")
            found = Choice(**{name: value for name, value in told.items() if name not in fresh})
            return self._keep(session, found)

    def name_of(self, session: str) -> str:
        """Names the visitor's own pair; "" for the page's own models."""
        with self._lock:
            choice = self._choices.get(session)
            return "" if choice is None or choice.paths is None else str(choice.paths)

    def holds(self, session: str, token: str) -> bool:
        """Whether the choice of this token is still this visitor's."""
        with self._lock:
            choice = self._choices.get(session)
            return choice is not None and choice.token == token

    def applied(self, session: str, request: RunRequest, talk: bool = True) -> RunRequest:
        """The request with this visitor's models, conversation and stop strings.

        talk: the prompt is the next turn of the conversation, where one is held.
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
        """This was said so far, in the place of the visitor's conversation."""
        said = list(said)
        choice = self.of(session) if said else self.read(session)
        choice.system = next((turn["content"] for turn in said if turn["role"] == "system"), "")
        choice.turns = [turn for turn in said if turn["role"] != "system"]

    def answered(self, session: str, trace: str | None) -> None:
        """A run of this visitor's has ended: its answer is the next turn of the conversation."""
        lines = (trace or "").rstrip("\n").split("\n")
        if len(lines) < 2:
            return
        run, summary = json.loads(lines[0]), json.loads(lines[-1])
        asked, family = run["prompt"].get("messages"), run.get("family", "")
        choice = self.of(session) if converses(family) else self.read(session)
        if not (choice.chat or converses(family)):
            return
        if (
            not asked
            or summary["kind"] != "summary"
            or asked != choice.asking(asked[-1]["content"])
        ):
            return
        text = summary["text"]
        for end in self._ends(choice, family):
            text = text.removesuffix(end)
        turns = [turn for turn in asked if turn["role"] != "system"]
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
    """Whether the page's own target has a chat template; read from its files, without opening it."""
    folder, config = Path(model_paths().target), "tokenizer_config.json"
    if (folder / "chat_template.jinja").is_file():
        return True
    return (folder / config).is_file() and "chat_template" in needed_config(folder, config)


def special_texts(model: LanguageModel) -> list[str]:
    """The texts of the special tokens, with which an answer may end."""
    tokenizer = model.tokenizer
    specials = [tokenizer.decode([one]) for one in tokenizer.all_special_ids]
    return [one for one in {*specials, *tokenizer.get_added_vocab()} if one]


def told(model: LanguageModel, paths: ModelPaths) -> dict:
    """The details of a loaded pair that the page shows."""
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

"""transformers' own generate: plain, assisted by the draft model, and with prompt lookup.

The modules are loaded here and never handed to the engine, so a peer runs as its users run it:
sdpa attention, DynamicCache. A hook counts the target's passes; it costs microseconds.
"""

import time

import torch
from torch import Tensor
from transformers import AutoTokenizer, PreTrainedModel

from engine.bench.contestants import Contestant, Writing
from engine.model.generation import ends_of
from engine.parts.loading import ModelPaths
from engine.parts.opening import causal_model

DEFAULT_SCHEDULE = ("default", None)
SCHEDULES = [(kind, length) for kind in ("constant", "heuristic") for length in (3, 5, 20)]
LOOKUP_TOKENS = 10


class Counted:
    """A module and how often it was called; all contestants on it share one hook."""

    def __init__(self, model: PreTrainedModel, ends: frozenset[int]) -> None:
        self.model, self.ends, self.calls = model, ends, 0
        model.register_forward_pre_hook(self._count)

    def _count(self, *_) -> None:
        self.calls += 1


class Generate(Contestant):
    """generate(**settings) of one module."""

    def __init__(self, name: str, group: str, target: Counted, **settings) -> None:
        self.name, self.group = name, group
        self._target, self._settings = target, settings
        self._ends = sorted(target.ends) or None  # the engine's, whatever their source

    def write(self, prompt, count):
        given = torch.tensor([prompt])
        self.prepare()
        self._target.calls = 0
        began = time.perf_counter()
        out = self._target.model.generate(
            given,
            attention_mask=torch.ones_like(given),
            max_new_tokens=count,
            do_sample=False,
            pad_token_id=0,
            eos_token_id=self._ends,
            **self._settings,
        )
        seconds = time.perf_counter() - began
        return Writing(out[0, len(prompt) :].tolist(), seconds, self._target.calls)

    def prepare(self) -> None:
        """Set whatever must be set before each run."""

    def logits(self, tokens: list[int]) -> Tensor:
        """Logits [V] after these tokens."""
        with torch.no_grad():
            return self._target.model(torch.tensor([tokens]), logits_to_keep=1).logits[0, -1]


class Assisted(Generate):
    """generate(assistant_model=...) with one schedule of the number of drafted tokens."""

    def __init__(
        self, target: Counted, draft: PreTrainedModel, kind: str, length: int | None
    ) -> None:
        name = "assisted" if length is None else f"assisted {kind} {length}"
        super().__init__(name, "assisted", target, assistant_model=draft)
        config = draft.generation_config
        self._config = config
        self._schedule = {
            "num_assistant_tokens": length or config.num_assistant_tokens,
            "num_assistant_tokens_schedule": (
                config.num_assistant_tokens_schedule if length is None else kind
            ),
        }

    def prepare(self):
        for name, value in self._schedule.items():
            setattr(self._config, name, value)


def plain_generate(paths: ModelPaths, group: str) -> Generate:
    return Generate("transformers", group, _counted(paths))


def peer_contestants(paths: ModelPaths, schedules: list[tuple[str, int]]) -> list[Generate]:
    """Plain generate comes first, because the others are measured against it."""
    target = _counted(paths)
    lookup = {"prompt_lookup_num_tokens": LOOKUP_TOKENS}
    peers = [
        Generate("transformers", "plain", target),
        Generate("transformers lookup", "lookup", target, **lookup),
    ]
    if "draft" in paths.parts:
        draft = _module(paths.parts["draft"])
        peers += [Assisted(target, draft, *each) for each in [DEFAULT_SCHEDULE, *schedules]]
    return peers


def _counted(paths: ModelPaths) -> Counted:
    module = _module(paths.target)
    tokenizer = AutoTokenizer.from_pretrained(paths.target)
    return Counted(module, ends_of(module, tokenizer).tokens)


def _module(path: str) -> PreTrainedModel:
    return causal_model(path, torch.float32).eval()

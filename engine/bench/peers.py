"""Contestants that call transformers' own ``generate``: plain, assisted by the draft model, and with prompt lookup.

In suites on a CPU, this module loads separate copies of the models for these contestants and never hands them to the
engine. So ``generate`` runs as its users run it, with SDPA attention and DynamicCache. A hook counts the target's
passes, which takes microseconds.
"""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor
from transformers import AutoTokenizer, PreTrainedModel

from engine.bench.contestants import Contestant, Writing, wait
from engine.model.generation import ends_of
from engine.parts.loading import ModelPaths
from engine.parts.opening import causal_model

SCHEDULES = [(kind, length) for kind in ("constant", "heuristic") for length in (3, 5, 20)]
LOOKUP_TOKENS = 10


class Generate(Contestant):
    """A contestant that calls ``generate(**settings)`` of one module, greedily."""

    def __init__(
        self, name: str, group: str, module: PreTrainedModel, ends: Collection[int], **settings
    ) -> None:
        """ends: the tokens that end a text, which are the same as the engine's."""
        self.name, self.group, self.module = name, group, module
        self.ends, self._settings = sorted(ends), settings

    def write(self, prompt, count, counters=None):
        ids = torch.tensor([prompt], device=self.module.device)
        self.prepare()
        helpers = [helper for name, helper in self._settings.items() if name == "assistant_model"]
        with sdpa(self.module, *helpers), _passes(self.module) as passes:
            wait(ids.device)
            began = time.perf_counter()
            out = self.module.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=count,
                do_sample=False,
                pad_token_id=0,
                eos_token_id=self.ends or None,
                **self._settings,
            )
            wait(ids.device)
            seconds = time.perf_counter() - began
        tokens = out[0, len(prompt) :].tolist()
        return Writing(tokens, seconds, len(passes))

    def prepare(self) -> None:
        """Restore settings that a run may have changed. Called before each run."""

    def logits(self, tokens: Sequence[int]) -> Tensor:
        """The module's logits [V] after these tokens."""
        text = torch.tensor([tokens], device=self.module.device)
        with torch.no_grad(), sdpa(self.module):
            return self.module(text, logits_to_keep=1).logits[0, -1].float()


class Assisted(Generate):
    """A contestant that calls ``generate(assistant_model=...)``, with one schedule for the number of drafted tokens."""

    def __init__(
        self,
        name: str,
        module: PreTrainedModel,
        ends: Collection[int],
        draft: PreTrainedModel,
        schedule: Mapping[str, object] | None = None,
    ) -> None:
        """draft: the draft model's module. schedule: fields to set in the draft model's generation config; None leaves
        the config as it is."""
        super().__init__(name, "assisted", module, ends, assistant_model=draft)
        self._config = draft.generation_config
        names = ("num_assistant_tokens", "num_assistant_tokens_schedule")
        self._schedule = {name: getattr(self._config, name) for name in names} | (schedule or {})

    def prepare(self):
        vars(self._config).update(self._schedule)


def constant(length: int, kind: str = "constant") -> dict[str, object]:
    return {"num_assistant_tokens": length, "num_assistant_tokens_schedule": kind}


@contextmanager
def sdpa(*modules: PreTrainedModel) -> Iterator[None]:
    """A context manager within which the modules use transformers' SDPA attention instead of the engine's attention."""
    names = [module.config._attn_implementation for module in modules]
    for module in modules:
        module.set_attn_implementation("sdpa")
    try:
        yield
    finally:
        for module, name in zip(modules, names, strict=True):
            module.set_attn_implementation(name)


@contextmanager
def _passes(module: PreTrainedModel) -> Iterator[list[None]]:
    """A context manager that yields a list, which gets one entry per pass of the module."""
    passes: list[None] = []
    hook = module.register_forward_pre_hook(lambda *_: passes.append(None))
    try:
        yield passes
    finally:
        hook.remove()


def plain_generate(paths: ModelPaths, group: str) -> Generate:
    module = _module(paths.target)
    ends = ends_of(module, AutoTokenizer.from_pretrained(paths.target)).tokens
    return Generate("transformers", group, module, ends)


def peer_contestants(
    paths: ModelPaths,
    schedules: Sequence[tuple[str, int]],
    draft: PreTrainedModel | None = None,
) -> list[Generate]:
    """The contestants that call ``generate``. The plain one is first, because the others are compared with it.

    schedules: for each further contestant with assisted generation, besides that with the default schedule, the kind of
    its schedule and the number of drafted tokens. draft: the draft model's module. None means that the draft model in
    ``paths`` is opened, if there is one.
    """
    plain = plain_generate(paths, "plain")
    module, ends = plain.module, plain.ends
    lookup = {"prompt_lookup_num_tokens": LOOKUP_TOKENS}
    peers = [plain, Generate("transformers lookup", "lookup", module, ends, **lookup)]
    if draft is None and "draft" in paths.parts:
        draft = _module(paths.parts["draft"])
    if draft is not None:
        peers.append(Assisted("assisted", module, ends, draft))
        peers += [
            Assisted(f"assisted {kind} {length}", module, ends, draft, constant(length, kind))
            for kind, length in schedules
        ]
    return peers


def _module(path: str) -> PreTrainedModel:
    return causal_model(path, torch.float32).eval()

"""The second stage of a run: its models are open, its prompt is tokenized, and the size of its drafts is settled."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from engine.chat.picture_prompt import shown
from engine.chat.prompt_end import TakenBack, taken_back
from engine.chat.turns import ChatPrompt, read_prompt
from engine.core.bound import BEGUN
from engine.core.options import Value
from engine.core.rule import Verifier
from engine.errors import UserError
from engine.model.generation import own_stop_strings
from engine.model.language_model import LanguageModel
from engine.parts.hub import name_of
from engine.parts.loading import Models, load_models
from engine.progress import Tell, silent
from engine.run.run_plan import Plan
from engine.sizes.draft_size import settle_size, with_costs, with_step_costs
from engine.trace.recording import Setting


@dataclass(frozen=True)
class Opened:
    """A plan with its models. Nothing of its text has been computed.

    prompt: in the form that the target reads. options: the drafter's options, none of which is left to be decided.
    stops: all strings that end the text, including the target's own. end: the end of the prompt that was taken back, so
    that the target writes its tokens anew; None if the request asks for no such healing. sees: the trace's entry on the
    picture that the target was shown; None without a picture.
    """

    plan: Plan
    models: Models
    prompt: ChatPrompt
    options: dict[str, Value]
    stops: tuple[str, ...]
    end: TakenBack | None
    sees: dict | None

    @classmethod
    def of(cls, plan: Plan, tell: Tell = silent) -> Opened:
        """Open the models of a plan. Models are opened once per process, and a draft size is measured once per machine.

        tell: receives the progress of slow tasks. Raises UserError, one sentence, for models, a prompt or options that
        do not fit.
        """
        request = plan.request
        models = load_models(request.models, plan.needs, request.dtype, request.device)
        plan = plan.sampled_by(models.target)
        if models.target.known is not None:
            masked = request.constrained or bool(plan.rule.law)
            models.target.check(plan.drafter, plan.sampling, plan.rule, masked)
        words, sees, end = request.prompt, None, None
        if request.messages is None:
            target, words, sees = shown(models.target, words)
            models = replace(models, target=target) if sees else models
        prompt = read_prompt(models.target, words, request.messages)
        if sees:
            prompt = replace(prompt, text=request.prompt)
        if request.heal and sees:
            raise UserError("A prompt with a picture has no end to heal.")
        if request.heal:
            prompt, end = taken_back(models.target, prompt)
        options = settle_size(plan.drafter, plan.options, models, plan.sampling, tell)
        models = with_costs(plan.drafter, options, models, tell)
        models = with_step_costs(plan.drafter, options, models, tell)
        own = own_stop_strings(models.target.model.generation_config)
        return cls(plan, models, prompt, options, (*request.stop, *own), end, sees)

    @property
    def length(self) -> int:
        """The most tokens of the whole text, prompt included."""
        requested = len(self.prompt.tokens) + self.plan.request.max_new_tokens
        return min(requested, self.models.target.max_context)

    @property
    def kv_bytes(self) -> int:
        """The most bytes of keys and values that the language models need for the text."""
        models = [self.models.target, *self.models.parts.values()]
        readers = [model for model in models if isinstance(model, LanguageModel)]
        more = {id(self.models.target): self.plan.drafter.rows_kept}
        return sum(reader.kv_bytes(self.length + 1 + more.get(id(reader), 0)) for reader in readers)

    def setting(self, rule: Verifier) -> Setting:
        """The content of the trace's run line. rule: the rule that will judge the run."""
        plan, request = self.plan, self.plan.request
        return Setting(
            self._drafter_shown(),
            self._rule_shown(),
            plan.sampling,
            plan.drafter.loop,
            self._constraint_shown(rule),
            rule,
            self.stops,
            request.models.family,
            self.sees,
        )

    def _drafter_shown(self) -> dict:
        drafter, folders = self.plan.drafter, self.models.folders
        parts = {role: name_of(folders[role]).rpartition("/")[2] for role in self.plan.needs}
        return {
            "key": drafter.key,
            "title": drafter.title,
            "family": drafter.family,
            "options": self.options,
            "labels": {o.name: o.label.lower() for o in drafter.options if o.label},
            **({"parts": parts} if parts else {}),
        }

    def _constraint_shown(self, rule: Verifier) -> tuple[str, str, str] | None:
        request = self.plan.request
        if self.end is not None:
            return "heal", self.end.text, BEGUN
        if request.python_names:
            return "python_names", "", rule.constrained_law
        if request.json_schema is not None:
            return "json_schema", request.json_schema, rule.constrained_law
        return None

    def _rule_shown(self) -> dict:
        plan, rule = self.plan, self.plan.rule
        exact = rule.lossless_with(plan.drafter.kinds(plan.sampling))
        target, law = self.models.target, plan.drafter.text_law or rule.law
        # nothing is known of an engine's rounding
        rounds = target.known is not None or target.dtype.itemsize < torch.float32.itemsize
        return {
            "key": rule.key,
            "title": rule.title,
            "lossless": exact and not rounds,
            "same_text": rule.same_text and (exact or bool(law)) and not rounds,
            **({"law": law} if law else {}),
            **({"up_to_rounding": True} if exact and rounds else {}),
            "options": plan.rule_options,
            "sentences": dict(rule.sentences),
        }

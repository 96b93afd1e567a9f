"""The first stage of a run: a request that is checked as far as is possible before a model is opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from engine.chat.schema_check import checked as checked_schema
from engine.chat.turns import Message
from engine.chat.turns import checked as checked_turns
from engine.core.bound import MASKED
from engine.core.drafter import Drafter
from engine.core.ending import check_stop_strings
from engine.core.memory import Memory
from engine.core.options import Value, resolve
from engine.core.rule import Verifier
from engine.core.sampling import Sampling
from engine.errors import UserError
from engine.methods import drafter as drafter_class
from engine.model.generation import own_sampling
from engine.model.language_model import LanguageModel
from engine.parts.loading import ModelPaths, check_parts, place_of
from engine.rules import rule_class


@dataclass(frozen=True)
class RunRequest:
    """A user's request; a ``Plan`` checks it."""

    prompt: str
    models: ModelPaths
    drafter: str = "auto"
    options: dict = field(default_factory=dict)
    verifier: str | None = None
    """The key of the rule; None: the drafter's own rule."""

    rule_options: dict = field(default_factory=dict)
    max_new_tokens: int = 128
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    cuts: tuple[tuple[str, float], ...] = ()
    """Further truncations of p (``engine.core.sampling.CUTS``)."""

    seed: int = 0
    dtype: str | None = None
    device: str | None = None
    recorded: bool = True
    """If False, lines hold only the output, and steps may be judged on the device."""

    json_schema: str | None = None
    """A JSON schema that the text must follow."""

    python_names: bool = False
    """Where a line of Python uses a name, this name must exist in the text so far (``engine.chat.python_names``)."""

    heal: bool = False
    """Take back the prompt's last tokens where the prompt may end within a token (``engine.chat.prompt_end``)."""

    memory: Memory | None = None
    """The visitor's memory, for drafters that learn; with None, a new one."""

    most_nodes: int | None = None
    """The most nodes of a step; if the drafter makes more, the run ends with a UserError."""

    messages: Sequence[Message] | None = None
    """A conversation that awaits an answer; it replaces the prompt."""

    stop: Sequence[str] = ()
    """Strings that end the text once it contains one of them, besides the strings in the target's generation config."""

    own_sampling: bool = False
    """Sample as the target's generation config says; temperature, top_k, top_p and cuts are ignored."""

    @property
    def constrained(self) -> bool:
        return self.json_schema is not None or self.python_names or self.heal


MAX_NEW_TOKENS = 100_000


@dataclass(frozen=True)
class Plan:
    """A checked request, with the classes and options that it names.

    options, rule_options: the values of all declared options; a drafter's size of 0 is settled once the models are
    open. sampling: None if the model is to sample as its generation config says; then rule is None, too, unless the
    request names one.
    """

    request: RunRequest
    drafter: type[Drafter]
    options: Mapping[str, Value]
    sampling: Sampling | None
    rule: type[Verifier] | None
    rule_options: Mapping[str, Value]

    @classmethod
    def of(cls, request: RunRequest) -> Plan:
        """The plan for a request. Raises UserError, one sentence, if the request does not fit."""
        drafter, sampling = drafter_class(request.drafter), None
        options = resolve(f"drafter {drafter.key}", drafter.options, request.options)
        _check_size(drafter, options, request.most_nodes)
        if not request.own_sampling:
            sampling = Sampling(
                request.temperature, request.top_k, request.top_p, request.seed, request.cuts
            )
        rule, rule_options = _rule(request, drafter, sampling), {}
        if rule is not None:
            rule_options = resolve(f"verifier {rule.key}", rule.options, request.rule_options)
        _check_text(request)
        place_of(request.dtype, request.device)
        check_parts(request.models, drafter.needs)
        return cls(request, drafter, options, sampling, rule, rule_options)

    @property
    def needs(self) -> dict[str, str]:
        """The parts to open, role -> kind: those that the drafter needs, and available parts that it may use."""
        usable = self.drafter.may_use().items()
        parts = self.request.models.parts
        return {**self.drafter.needs, **{role: kind for role, kind in usable if role in parts}}

    def sampled_by(self, target: LanguageModel) -> Plan:
        """The plan with the sampling of the target's generation config, if the request asks for that sampling."""
        if self.sampling is not None:
            return self
        own = own_sampling(target.model)
        return Plan.of(replace(self.request, own_sampling=False, **own))


def rule_for(key: str | None, drafter: type[Drafter], sampling: Sampling) -> type[Verifier]:
    """The rule with this key; with None, the drafter's own rule. Raises UserError for an unknown key, for a greedy rule
    at a temperature above 0, and for a rule that cannot judge the drafter's trees."""
    rule = rule_class(drafter.own_rule(sampling) if key is None else key)
    if rule.only_greedy and not sampling.greedy:
        raise UserError(f"The verifier {rule.key} works at temperature 0 only.")
    if not rule.judges(drafter.shape, drafter.kinds(sampling)):
        raise UserError(f"The verifier {rule.key} cannot judge the drafts of {drafter.key}.")
    return rule


def _rule(
    request: RunRequest, drafter: type[Drafter], sampling: Sampling | None
) -> type[Verifier] | None:
    if sampling is not None:
        rule = rule_for(request.verifier, drafter, sampling)
        more = rule.constrained_law != MASKED
        if request.constrained and more and drafter.loop != "speculative":
            raise UserError(
                f"Under a constraint the verifier {rule.key} cannot judge {drafter.key}."
            )
        if request.heal:
            _check_healing(rule, sampling)
        return rule
    return None if request.verifier is None else rule_class(request.verifier)


def _check_healing(rule: type[Verifier], sampling: Sampling) -> None:
    """Raises UserError for a rule or a sampling with which healing the prompt's end would not keep the law of the text
    (``RunRequest.heal``)."""
    if rule.tests_tokens or rule.constrained_law != MASKED:
        raise UserError(f"The verifier {rule.key} cannot judge a text whose prompt is healed.")
    if not sampling.greedy and (sampling.top_k or sampling.top_p < 1 or sampling.cuts):
        raise UserError(
            "A healed prompt goes on by the whole of p: leave out top-k, top-p and other cuts."
        )


def _check_size(
    drafter: type[Drafter], options: Mapping[str, Value], most_nodes: int | None
) -> None:
    """Raises UserError if the options set more nodes for a step than are allowed."""
    name = drafter.size_option
    if most_nodes is None or name is None or options[name] <= most_nodes:
        return
    label = next(option.label for option in drafter.options if option.name == name)
    raise UserError(
        f"With these options {drafter.title} drafts up to {options[name]} nodes in a step; at most "
        f"{most_nodes} are allowed here. Set its {(label or name).lower()} to {most_nodes} or fewer."
    )


def _check_text(request: RunRequest) -> None:
    """Raises UserError for an invalid prompt, length, stop string or constraint."""
    if not 1 <= request.max_new_tokens <= MAX_NEW_TOKENS:
        raise UserError(
            f"The number of new tokens must lie between 1 and {MAX_NEW_TOKENS}, "
            f"not {request.max_new_tokens}."
        )
    if request.messages is not None:
        checked_turns(request.messages)
    elif not request.prompt.strip():
        raise UserError("The prompt is empty.")
    check_stop_strings(request.stop)
    if (request.json_schema is not None) + request.python_names + request.heal > 1:
        raise UserError(
            "A text is held either to a JSON schema or to the names of its Python, or its prompt is healed."
        )
    if request.heal and request.messages is not None:
        raise UserError("A conversation has no prompt to heal: its answer begins anew.")
    if request.json_schema is not None:
        checked_schema(request.json_schema)

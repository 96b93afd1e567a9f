"""The first station of a run: a request that is checked as far as that is possible before a model is opened."""

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
    """The rule; None: the drafter's own."""

    rule_options: dict = field(default_factory=dict)
    max_new_tokens: int = 128
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    cuts: tuple[tuple[str, float], ...] = ()
    """Further cuts of p (``engine.core.sampling.CUTS``)."""

    seed: int = 0
    dtype: str | None = None
    device: str | None = None
    recorded: bool = True
    """False: lines hold only the output, and steps may be judged on the device."""

    json_schema: str | None = None
    """A JSON schema that the text must follow."""

    python_names: bool = False
    """Where a line of Python uses a name, it must exist in the text so far (``engine.chat.python_names``)."""

    heal: bool = False
    """Take the prompt's last tokens back where it may end within a token (``engine.chat.prompt_end``)."""

    memory: Memory | None = None
    """The visitor's memory, for drafters that learn; a fresh one if None."""

    most_nodes: int | None = None
    """Most nodes of a step; if the drafter makes more, the run ends with a UserError."""

    messages: Sequence[Message] | None = None
    """A conversation that awaits an answer, in place of the prompt."""

    stop: Sequence[str] = ()
    """Strings that end the text once it contains one of them, besides those of the target's generation config."""

    own_sampling: bool = False
    """Sample as the target's generation config says; temperature, top_k, top_p and cuts are not used."""

    @property
    def constrained(self) -> bool:
        return self.json_schema is not None or self.python_names or self.heal


MAX_NEW_TOKENS = 100_000


@dataclass(frozen=True)
class Plan:
    """A request that has been checked, and the classes and options that it names.

    options, rule_options: all that are declared, with their values; a drafter's size of 0 is settled once the models
    are open. sampling: None where the model is to sample as its own generation config says; rule is then None, too,
    if the request names none.
    """

    request: RunRequest
    drafter: type[Drafter]
    options: Mapping[str, Value]
    sampling: Sampling | None
    rule: type[Verifier] | None
    rule_options: Mapping[str, Value]

    @classmethod
    def of(cls, request: RunRequest) -> Plan:
        """Raises UserError, one sentence, for anything that does not fit."""
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
        """The parts to open: those that the drafter needs, and those that it may use and that are at hand; role -> kind."""
        usable = self.drafter.may_use().items()
        parts = self.request.models.parts
        return {**self.drafter.needs, **{role: kind for role, kind in usable if role in parts}}

    def sampled_by(self, target: LanguageModel) -> Plan:
        """The plan with the sampling of the target's generation config, where that was asked for."""
        if self.sampling is not None:
            return self
        own = own_sampling(target.model)
        return Plan.of(replace(self.request, own_sampling=False, **own))


def rule_for(key: str | None, drafter: type[Drafter], sampling: Sampling) -> type[Verifier]:
    """The rule of this key, or the drafter's own. Raises UserError for an unknown key, and for a rule of greedy decoding
    where tokens are drawn or one that cannot judge the drafter's trees."""
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
    """Raises UserError for a rule or a sampling under which no law of healed texts is kept."""
    if rule.tests_tokens or rule.constrained_law != MASKED:
        raise UserError(f"The verifier {rule.key} cannot judge a text whose prompt is healed.")
    if not sampling.greedy and (sampling.top_k or sampling.top_p < 1 or sampling.cuts):
        raise UserError(
            "A healed prompt goes on by the whole of p: leave out top-k, top-p and other cuts."
        )


def _check_size(
    drafter: type[Drafter], options: Mapping[str, Value], most_nodes: int | None
) -> None:
    """Raises UserError where the options ask for more nodes in a step than are allowed."""
    name = drafter.size_option
    if most_nodes is None or name is None or options[name] <= most_nodes:
        return
    label = next(option.label for option in drafter.options if option.name == name)
    raise UserError(
        f"With these options {drafter.title} drafts up to {options[name]} nodes in a step; at most "
        f"{most_nodes} are allowed here. Set its {(label or name).lower()} to {most_nodes} or fewer."
    )


def _check_text(request: RunRequest) -> None:
    """Raises UserError for a prompt, an end or a constraint that no text can have."""
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

"""A user's request for one run."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from engine.chat.turns import Message
from engine.core.memory import Memory
from engine.parts.loading import ModelPaths


@dataclass(frozen=True)
class RunRequest:
    """A user's request; a ``Plan`` checks it."""

    prompt: str
    models: ModelPaths
    drafter: str = "chain"
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

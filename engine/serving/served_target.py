"""A model behind a serving engine, as a target.

In each step the engine reads the text and the whole draft. It reports some log-probabilities of each row, and at
temperature 1 it also draws tokens (``engine.serving.served_text``). The times of a step mean little: the text is sent
each time, and the engine may read it again.
"""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import torch
from transformers import GenerationConfig

from engine.bounded.bounded_tokenizer import open_tokenizer
from engine.core.drafter import Drafter
from engine.core.load import UNKNOWN, Expected
from engine.core.rule import Verifier
from engine.core.sampling import Sampling, stream
from engine.core.seen import Draft
from engine.core.threads import elsewhere
from engine.core.tree import ROOT
from engine.errors import UserError
from engine.model.generation import ends_of
from engine.serving import sglang_questions, vllm_questions
from engine.serving.engine_address import ENGINES, read
from engine.serving.engine_client import EngineClient
from engine.serving.served_rows import (
    KNOWN,
    MOST_PROMPTS,
    MOST_TOKENS,
    Question,
    Reading,
    Row,
    ServedSeen,
)

SAMPLE = (
    "Once upon a time, 12 + 30 = 42.\n\ndef area(width):\n\treturn 'Grüße, 漢字 🦊'  # <b>?</b>"
)
"""A text that different vocabularies are likely to split differently."""
OPENING = 2.4
"""When the target is opened, two requests are made to the engine. Each must be answered within this number of
seconds."""
SERVED = frozenset({"draft", "pard", "datastore"})
"""The kinds of part that need nothing of the target's module, which is missing for a target behind an engine."""
SAMPLED_RULES = ("rejection", "block", "traversal")
"""Rules for temperature 1. They need p only of tokens that the draft has or could have drawn, and the sum over all
others."""
QUESTIONS = {"vllm": vllm_questions.questions, "sglang": sglang_questions.questions}


READS_ITSELF = "reads with the target itself, which an engine does not allow"


def reads_itself(drafter: type[Drafter]) -> bool:
    """Whether the drafter needs more than a target behind an engine can report."""
    own = drafter.uses_target or drafter.loop != "speculative"
    return own or not SERVED.issuperset(drafter.needs.values())


class ServedTarget:
    """The target at an address. It has those attributes of ``engine.model.language_model.LanguageModel`` that drafters
    which only propose need."""

    asynchronous = False
    torch_threads = None
    picture = None
    leading = ()
    parameters = 0  # unknown
    dtype = "as served"
    device = torch.device("cpu")
    known = KNOWN
    reads_stored = False
    holds_branches = False

    def __init__(self, address: str, tokenizer_folder: str) -> None:
        """Connect to the engine. tokenizer_folder: holds the target's own tokenizer. Raises UserError if no engine
        serves this model."""
        self._client, self._opening = (
            EngineClient(read(address)),
            EngineClient(read(address), OPENING),
        )
        self._questions = QUESTIONS[self._client.address.engine]
        self.served_name = self._client.address.name
        self.name = self.served_name.rpartition("/")[2]
        self.max_context = self._context()
        folder = Path(tokenizer_folder)
        self.tokenizer = open_tokenizer(folder, folder.name)
        self.vocab_size = self.embeddings = max(self.tokenizer.get_vocab().values()) + 1
        self._check_vocabulary(folder.name)
        self.model = SimpleNamespace(generation_config=None)
        self.end_tokens, self.ends_named_by = ends_of(_named_by(folder), self.tokenizer)

    def _context(self) -> int:
        """The longest text in tokens. Raises UserError if the engine does not serve the model."""
        models = self._field("data", "/v1/models")
        named = {model.get("id"): model for model in models} if _are_objects(models) else {}
        if self.served_name not in named:
            served = ", ".join(str(name)[:80] for name in list(named)[:8])
            raise UserError(
                f"The engine at {self._client.address.place} serves no model {self.served_name!r}; it serves: {served}."
            )
        context = named[self.served_name].get("max_model_len")
        if not isinstance(context, int) or context < 2:
            raise self._nonsense()
        return context

    def _check_vocabulary(self, folder: str) -> None:
        """Raises UserError if the engine splits a text into other tokens than the tokenizer here."""
        question = {"model": self.served_name, "prompt": SAMPLE, "add_special_tokens": False}
        if self._field("tokens", "/tokenize", question) != list(
            self.tokenizer(SAMPLE, add_special_tokens=False)["input_ids"]
        ):
            raise UserError(
                f"{self.served_name} has another vocabulary than the tokenizer in {folder}."
            )

    def _field(self, name: str, path: str, question: dict | None = None) -> object:
        """A field of the engine's answer; None if the answer has no such field."""
        answer = self._opening.ask(path, question)
        return answer.get(name) if isinstance(answer, dict) else None

    def check(
        self, drafter: type[Drafter], sampling: Sampling, rule: type[Verifier], masked: bool
    ) -> None:
        """Raises UserError for a request that an engine cannot serve. masked: whether the text must follow a
        constraint."""
        if not sampling.greedy and sampling.temperature != 1:
            raise UserError(
                "A target behind an engine writes at temperature 0 or 1: for others p would have to be known of every token."
            )
        if sampling.top_k or sampling.top_p < 1 or sampling.cuts:
            raise UserError(
                "A target behind an engine is sampled from the whole of p: leave out top-k, top-p and other cuts."
            )
        if masked:
            raise UserError(
                "A target behind an engine follows no JSON schema and no other constraint."
            )
        rules = ("greedy",) if sampling.greedy else SAMPLED_RULES
        if rule.key not in rules:
            raise UserError(
                f"At this temperature a target behind an engine is judged by these rules only: {', '.join(rules)}."
            )
        if reads_itself(drafter):
            raise UserError(f"{drafter.title or drafter.key} {READS_ITSELF}.")

    def session(self, capacity: int, features: Sequence[int] = ()) -> "ServedSession":
        """A session for one text."""
        return ServedSession(self)

    def expect(self, features: Sequence[int], nodes: int, coming: Expected = UNKNOWN) -> None:
        """Raises UserError for a drafter that needs hidden states."""
        if features:
            raise UserError(
                "This drafter needs the target's hidden states, which an engine does not tell."
            )

    def read(self, reading: Reading) -> ServedSeen:
        """Have the engine read a text and a draft. Raises UserError."""
        rows: dict[int, Row] = {}
        calls = 0
        for question in self._questions(self.served_name, reading):
            _check_size(question)
            with elsewhere():
                answer, calls = self._client.ask(question.path, question.body), calls + 1
            try:
                rows |= question.rows(answer)
            except (KeyError, IndexError, TypeError, ValueError, AttributeError):
                raise self._nonsense() from None
        try:
            logits = [
                rows[place].logits(self.vocab_size) for place in range(ROOT, len(reading.tree))
            ]
        except IndexError:
            raise UserError(
                f"{self.served_name} has another vocabulary than its tokenizer here."
            ) from None
        except (KeyError, ValueError):
            raise self._nonsense() from None
        told_rows = [rows[place] for place in range(ROOT, len(reading.tree))]
        return ServedSeen(torch.stack(logits), None, rows=told_rows, calls=calls)

    def _nonsense(self) -> UserError:
        address = self._client.address
        return UserError(
            f"The engine at {address.place} answers otherwise than {ENGINES[address.engine]} does."
        )


class ServedSession:
    """One text, whose tokens are sent with every draft. postponed: 0, because prompts are not read before the first
    look. seed: the seed of a sampled text; None at temperature 0."""

    features: tuple[int, ...] = ()
    postponed = 0
    seed: int | None = None

    def __init__(self, target: ServedTarget) -> None:
        self._target = target
        self._text: list[int] = []
        self._looked: list[int] = []

    @property
    def length(self) -> int:
        return len(self._text)

    @property
    def rows(self) -> int:
        return len(self._looked)

    def prefill(self, tokens, layers=None, last=None, later=False) -> None:
        self._text += tokens

    def take_over(self, other: "ServedSession", length: int) -> None:
        self._text = other._text[:length]

    def look(self, draft: Draft) -> ServedSeen:
        self._looked, _ = draft.rows
        text = [*self._text, draft.root]
        # each position of a text has a seed of its own, so a repeated request draws the same tokens
        seed = (
            None
            if self.seed is None
            else stream(self.seed, f"engine {len(text)}").initial_seed() >> 32
        )
        return self._target.read(Reading(text, draft.tree, seed))

    def commit(self, rows: Sequence[int]) -> None:
        self._text += [self._looked[row] for row in rows]
        self.drop()

    def drop(self) -> None:
        self._looked = []


def _check_size(question: Question) -> None:
    """Raises UserError for a question that is too large to send."""
    count, tokens = len(question.prompts), sum(map(len, question.prompts))
    if count > MOST_PROMPTS:
        raise UserError(
            f"The engine would have to read {count} prompts for this draft; it is asked to read {MOST_PROMPTS} at once."
        )
    if tokens > MOST_TOKENS:
        raise UserError(
            f"The engine would be sent {tokens:,} tokens at once; at most {MOST_TOKENS:,} are sent."
        )


def _are_objects(answers: object) -> bool:
    return isinstance(answers, list) and all(isinstance(answer, dict) for answer in answers)


def _named_by(folder: Path) -> SimpleNamespace:
    """An object that holds the generation config found beside a tokenizer, in the form that ``ends_of`` reads."""
    try:
        config = GenerationConfig.from_pretrained(folder)
    except OSError:
        config = None
    empty = SimpleNamespace(get_text_config=lambda: None)
    return SimpleNamespace(generation_config=config, config=empty)

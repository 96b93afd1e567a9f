"""A model behind a serving engine, as a target.

Each round asks the engine to read the text and every path of the draft (``/v1/completions`` with token ids and
``prompt_logprobs``). vLLM's answer names the likeliest tokens of each row, and the row's own next token; nothing of a
text is kept there between two rounds, so the times say little.

Of a row, only these log-probabilities are known. What is left of p is spread evenly over all other tokens: the likeliest
token stays so, and at temperature 0 it decides.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace

import torch
from torch import Tensor
from transformers import GenerationConfig

from engine.bounded.bounded_tokenizer import open_tokenizer
from engine.core.drafter import Drafter
from engine.core.load import UNKNOWN, Expected
from engine.core.rule import Verifier
from engine.core.sampling import Sampling
from engine.core.seen import Draft, Seen
from engine.core.tree import ROOT, DraftTree
from engine.errors import UserError
from engine.model.generation import ends_of
from engine.serving.engine_address import read
from engine.serving.engine_client import EngineClient

KNOWN = 8
"""Log-probabilities of a row that are asked for: as many as a trace shows."""
SAMPLE = (
    "Once upon a time, 12 + 30 = 42.\n\ndef area(width):\n\treturn 'Grüße, 漢字 🦊'  # <b>?</b>"
)
"""A text that two vocabularies split in two ways."""
SERVED = frozenset({"draft", "datastore"})
"""Kinds of parts that ask nothing of the target itself."""
MOST_PATHS = 64


class ServedTarget:
    """The target at this address. Attributes as of ``engine.model.language_model.LanguageModel``, as far as a drafter
    that only proposes needs them."""

    asynchronous = False
    torch_threads = None
    picture = None
    parameters = 0  # nobody tells
    dtype = "as served"
    device = torch.device("cpu")
    known = KNOWN

    def __init__(self, address: str, tokenizer_folder: str) -> None:
        """tokenizer_folder: holds the target's own tokenizer. Raises UserError where no engine serves such a model."""
        self._client = EngineClient(read(address))
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
        """Tokens of the longest text. Raises UserError where the engine does not serve the model."""
        models = self._client.ask("/v1/models").get("data")
        named = {model.get("id"): model for model in models} if _are_objects(models) else {}
        if self.served_name not in named:
            known = ", ".join(str(name)[:80] for name in list(named)[:8])
            raise UserError(
                f"The engine at {self._client.address.place} serves no model {self.served_name!r}; it serves: {known}."
            )
        context = named[self.served_name].get("max_model_len")
        if not isinstance(context, int) or context < 2:
            raise self._nonsense()
        return context

    def _check_vocabulary(self, folder: str) -> None:
        """Raises UserError where the engine splits a text into other tokens."""
        question = {"model": self.served_name, "prompt": SAMPLE, "add_special_tokens": False}
        tokens = self._client.ask("/tokenize", question).get("tokens")
        if tokens != list(self.tokenizer(SAMPLE, add_special_tokens=False)["input_ids"]):
            raise UserError(
                f"{self.served_name} has another vocabulary than the tokenizer in {folder}."
            )

    def check(
        self, drafter: type[Drafter], sampling: Sampling, rule: type[Verifier], masked: bool
    ) -> None:
        """Raises UserError for what cannot be had of an engine. masked: whether the text must follow a schema."""
        if not sampling.greedy:
            raise UserError(
                "A target behind an engine writes at temperature 0 only: an engine tells too little of p to draw from it."
            )
        if masked:
            raise UserError("A target behind an engine follows no JSON schema.")
        if rule.key != "greedy":
            raise UserError("A target behind an engine is judged by the rule greedy only.")
        own = drafter.uses_target or drafter.loop != "speculative"
        if own or not SERVED.issuperset(drafter.needs.values()):
            raise UserError(
                f"{drafter.title or drafter.key} reads with the target itself, which an engine does not allow."
            )

    def session(self, capacity: int, features: Sequence[int] = ()) -> "ServedSession":
        """A text of its own."""
        return ServedSession(self)

    def expect(self, features: Sequence[int], nodes: int, coming: Expected = UNKNOWN) -> None:
        """Raises UserError for a drafter that wants hidden states."""
        if features:
            raise UserError(
                "This drafter needs the target's hidden states, which an engine does not tell."
            )

    def rows(self, text: Sequence[int], tree: DraftTree) -> Tensor:
        """Logits [N + 1, V] after the last token of the text and after each node. Raises UserError."""
        paths = [_path(tree, leaf) for leaf in range(len(tree)) if not tree.children(leaf)] or [[]]
        if len(paths) > MOST_PATHS:
            raise UserError(
                f"The draft has {len(paths)} paths; an engine is asked about {MOST_PATHS} at once."
            )
        prompts = [[*text, *(tree.tokens[node] for node in path)] for path in paths]
        question = {
            "model": self.served_name,
            "prompt": prompts,
            "max_tokens": 1,
            "temperature": 0,
            "prompt_logprobs": KNOWN,
            "logprobs": KNOWN,
            "return_tokens_as_token_ids": True,
            "ignore_eos": True,
        }
        answers = self._client.ask("/v1/completions", question).get("choices")
        if not _are_objects(answers) or len(answers) != len(prompts):
            raise self._nonsense()
        known: dict[int, dict[int, float]] = {}
        try:
            for answer in answers:
                path = paths[answer["index"]]
                told = self._told(answer, len(text), len(path))
                for node, row in zip([ROOT, *path], told, strict=True):
                    # paths that part at a node tell different next tokens there
                    known[node] = row | known.get(node, {})
            return torch.stack([self._row(known[node]) for node in range(ROOT, len(tree))])
        except (KeyError, IndexError, TypeError, ValueError, AttributeError):
            raise self._nonsense() from None

    def _told(self, answer: Mapping, text: int, path: int) -> list[dict[int, float]]:
        """Log-probabilities of the tokens after the text and after each node of a path. Raises KeyError and the like for
        an answer that does not tell them."""
        rows = answer["prompt_logprobs"][text : text + path]
        told = [
            {int(token): float(entry["logprob"]) for token, entry in row.items()} for row in rows
        ]
        (last,) = answer["logprobs"]["top_logprobs"]
        return [
            *told,
            {int(token.removeprefix("token_id:")): float(p) for token, p in last.items()},
        ]

    def _row(self, known: Mapping[int, float]) -> Tensor:
        """Logits [V]. Raises ValueError for numbers that are no log-probabilities, and UserError for unknown tokens."""
        if not known or any(not p <= 1e-4 for p in known.values()):
            raise ValueError
        if not 0 <= min(known) <= max(known) < self.vocab_size:
            raise UserError(f"{self.served_name} has another vocabulary than its tokenizer here.")
        rest = 1 - sum(map(math.exp, known.values()))
        others = self.vocab_size - len(known)
        row = torch.full(
            (self.vocab_size,), math.log(rest / others) if min(rest, others) > 0 else -math.inf
        )
        row[list(known)] = torch.tensor(list(known.values()))
        return row

    def _nonsense(self) -> UserError:
        return UserError(
            f"The engine at {self._client.address.place} answers otherwise than vLLM does."
        )


class ServedSession:
    """One text. Its tokens are sent with every draft. postponed: nothing is read before the first look."""

    features: tuple[int, ...] = ()
    postponed = 0

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

    def look(self, draft: Draft) -> Seen:
        self._looked, _ = draft.rows
        return Seen(self._target.rows([*self._text, draft.root], draft.tree), None)

    def commit(self, rows: Sequence[int]) -> None:
        self._text += [self._looked[row] for row in rows]
        self.drop()

    def drop(self) -> None:
        self._looked = []


def _path(tree: DraftTree, node: int) -> list[int]:
    """The nodes from the first one below the root to this one."""
    path = []
    while node != ROOT:
        path.insert(0, node)
        node = tree.parents[node]
    return path


def _are_objects(answers: object) -> bool:
    return isinstance(answers, list) and all(isinstance(each, dict) for each in answers)


def _named_by(folder: Path) -> SimpleNamespace:
    """What names the ends of a text, beside a tokenizer."""
    try:
        config = GenerationConfig.from_pretrained(folder)
    except OSError:
        config = None
    empty = SimpleNamespace(get_text_config=lambda: None)
    return SimpleNamespace(generation_config=config, config=empty)

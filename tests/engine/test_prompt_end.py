"""Token healing: what is taken back of a prompt, the law of the text, and the same text whatever is drafted."""

from functools import cache, partial
from itertools import product

import pytest
from tokenizers import Tokenizer, decoders
from tokenizers.models import BPE
from transformers import PreTrainedTokenizerFast

from engine.__main__ import main
from engine.chat.prompt_end import PromptEnd, taken_back
from engine.chat.turns import ChatPrompt
from engine.core.sampling import Sampling
from engine.errors import UserError
from engine.parts.loading import load_models
from engine.rules import verifier
from engine.run import Plan, RunRequest
from presets import family
from tests.drafters.writing import built
from tests.engine.family import embedded_tokenizer, tokens_of, trace_of
from tests.verifiers.step_errors import LENGTH, run_law
from tests.verifiers.tiny import tiny_models

TOKENIZER = embedded_tokenizer()
TEXTS = (
    "Once upon a time there was a little dog named Tim. He loved to play outside.",
    "def area(width, height):\n    total = width * height\n    return total\n",
    '[{"id": 1, "name": "Tom", "colour": "blue"}]\nAdd 12 and 30.\nThe café was 🦊 closed.',
)


def healed(text: str):
    tokens, target = TOKENIZER(text)["input_ids"], load_models(family(), {}).target
    return taken_back(target, ChatPrompt(text, tokens, frozenset()))


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_kept_of_a_prompt_cut_anywhere_begins_the_whole_text(text):
    """The borders that are left are borders of the whole text; without healing many are not."""
    whole, broken = TOKENIZER(text)["input_ids"], 0
    for size in range(6, len(text)):  # behind the first token, which stays
        kept, end = healed(text[:size])
        assert kept.text + end.text == text[:size] and len(kept.tokens) >= 1
        assert kept.tokens == whole[: len(kept.tokens)]
        cut = TOKENIZER(text[:size])["input_ids"]
        broken += cut != whole[: len(cut)]
    assert broken > 10, "no cut lay within a token: this would not show a fault"


MERGES = [("a", "b"), ("b", "c"), ("ab", "c"), ("c", "a")]
WORDS = [".", "a", "b", "c", "ab", "bc", "abc", "ca"]


def toy():
    """A target with a vocabulary of eight tokens, and its tokenizer."""
    backend = Tokenizer(BPE({word: token for token, word in enumerate(WORDS)}, MERGES))
    backend.decoder = decoders.Fuse()
    models = tiny_models(len(WORDS))
    models.target.tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend)
    return models


@cache
def conditional_law(kept: tuple[int, ...], text: str) -> dict:
    """The own law of the toy target of the next tokens, given that they spell this text, cut as by its tokenizer as far as
    tokens end within it."""
    models = toy()
    tokenizer, law = models.target.tokenizer, {}
    session = models.target.session(40)
    session.prefill(kept[:-1])
    rows = {}
    for path in [
        path for size in range(LENGTH) for path in product(range(len(WORDS)), repeat=size)
    ]:
        logits, _ = session.feed([kept[-1], *path], range(-1, len(path)))
        session.drop()
        rows[path] = logits[-1].double().softmax(-1).tolist()

    def fits(path) -> bool:
        before = ""
        for place, token in enumerate(path):
            if len(before) >= len(text):
                return True
            if list(path[:place]) != tokenizer(before)["input_ids"]:
                return False
            before += WORDS[token]
            if not (before.startswith(text) or text.startswith(before)):
                return False
        return len(before) >= len(text)

    for path in product(range(len(WORDS)), repeat=LENGTH):
        if fits(path):
            law[path] = 1.0
            for place, token in enumerate(path):
                law[path] *= rows[path[:place]][token]
    whole = sum(law.values())
    return {path: chance / whole for path, chance in law.items()}


class Masked(PromptEnd):
    """A fault: tokens that spell a beginning are not weighed by the chance that the rest follows."""

    def weighed(self, logits, continuation):
        return logits


def apart(one: dict, other: dict) -> float:
    return max(abs(one.get(path, 0.0) - other.get(path, 0.0)) for path in {*one, *other})


def distance(drafter: str, constraint: type[PromptEnd], text: str = "cab") -> float:
    """Return how far the law of the healed text is from the target's own."""
    models = toy()
    prompt = [WORDS.index("."), *models.target.tokenizer(text)["input_ids"]]
    kept, end = taken_back(models.target, ChatPrompt(f".{text}", prompt, frozenset()))
    assert (kept.text, end.text) == (".", text)
    make, fresh = partial(built, drafter, models), lambda: constraint(models.target, end, 1.0)
    law = run_law(models, make, verifier("rejection"), Sampling(1.0), (0,), fresh)
    return apart(law, conditional_law((WORDS.index("."),), text))


@pytest.mark.parametrize("drafter", ["chain", "dyspec"])
def test_the_law_of_a_healed_text(drafter):
    """The byte law, whatever is drafted."""
    assert distance(drafter, PromptEnd) < 1e-5


def test_masks_alone_keep_another_law():
    """The planted fault lies before the rule, so that it shows whatever is drafted."""
    assert distance("chain", Masked) > 1e-3


@pytest.mark.parametrize(
    "prompt", ["Once upon a ti", "def area(width, height):\n    return wid", "The dog was "]
)
def test_every_drafter_heals_to_the_same_text(prompt):
    plain = trace_of(prompt, drafter="none", heal=True, max_new_tokens=12)
    held = plain.run["constraint"]
    assert held["key"] == "heal" and held["text"] and held["law"].startswith("the target’s own")
    assert plain.run["prompt"]["text"] + held["text"] == prompt
    assert plain.summary["text"].startswith(held["text"])
    for drafter in ("chain", "dyspec", "prompt_lookup", "eagle"):
        trace = trace_of(prompt, drafter=drafter, heal=True, max_new_tokens=12)
        assert tokens_of(trace) == tokens_of(plain), drafter
    drawn = {"temperature": 1.0, "verifier": "sampler_match", "heal": True, "max_new_tokens": 12}
    texts = {
        trace_of(prompt, drafter=one, seed=1, **drawn).summary["text"] for one in ("none", "chain")
    }
    assert len(texts) == 1


def test_where_no_token_could_lie_across_the_end_nothing_is_taken_back():
    word = next(one for one in ("zebra!?", "…", "}]") if not healed(f"A {one}")[1].text)
    trace = trace_of(f"A {word}", drafter="none", heal=True, max_new_tokens=4)
    assert trace.run["constraint"]["text"] == ""
    same = trace_of(f"A {word}", drafter="none", max_new_tokens=4)
    assert tokens_of(trace) == tokens_of(same)


def test_the_terminal_writes_only_what_is_new(capsys):
    prompt = "Once upon a ti"
    asked = ["--drafter", "chain", "--prompt", prompt, "--max-new-tokens", "8"]
    assert main(["run", "--heal", *asked]) == 0
    told = capsys.readouterr()
    trace = trace_of(prompt, drafter="chain", heal=True, max_new_tokens=8)
    assert trace.run["constraint"]["text"] + told.out == trace.summary["text"]
    assert "the target’s own texts that begin so]" in told.err


@pytest.mark.parametrize(
    "fields, told",
    [
        ({"messages": [{"role": "user", "content": "a"}]}, "no prompt to heal"),
        ({"json_schema": "{}"}, "either to a JSON schema or"),
        ({"temperature": 1.0, "top_p": 0.9}, "leave out top-k"),
        ({"temperature": 1.0, "verifier": "awrs"}, "cannot judge a text whose prompt is healed"),
    ],
)  # fmt: skip
def test_what_healing_does_not_go_with(fields, told):
    with pytest.raises(UserError, match=told):
        Plan.of(RunRequest("Once", family(), heal=True, **fields))

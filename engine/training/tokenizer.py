"""The byte-level BPE tokenizer of the whole embedded family, and its chat template.

Each digit is a token of its own. Every byte has a token, so every text can be encoded. A turn of a chat is coded as
the token of its role, the tokens of its text and the end token.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

VOCABULARY_SIZE = 4096
EOS = "<|endoftext|>"
MASK = "<|mask|>"
# GPT-2's pattern, changed so that each digit is a separate piece.
PATTERN = r"'(?:s|t|re|ve|m|ll|d)| ?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"

ROLES = ["system", "user", "assistant"]
END = "<|end|>"
CHAT_TOKENS = [*(f"<|{role}|>" for role in ROLES), END]
TEMPLATE = (
    "{% for message in messages %}{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)


def train_tokenizer(
    texts: Iterable[str], vocabulary_size: int = VOCABULARY_SIZE
) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PATTERN), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary_size,
        special_tokens=[EOS, MASK],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=EOS,
        pad_token=EOS,
        mask_token=MASK,
        model_max_length=1024,
        clean_up_tokenization_spaces=False,
    )


def load_tokenizer(path: Path | str) -> PreTrainedTokenizerFast:
    return PreTrainedTokenizerFast.from_pretrained(path)


def with_chat(tokenizer: PreTrainedTokenizerFast) -> PreTrainedTokenizerFast:
    """The tokenizer with the chat template and the tokens that it needs. These tokens replace those of the last
    merges, which are the rarest, so the vocabulary keeps its size. All other tokens keep their ids."""
    state = json.loads(tokenizer.backend_tokenizer.to_str())
    model, added = state["model"], state["added_tokens"]
    by_id = sorted(model["vocab"], key=model["vocab"].get)
    for name, chat_token in zip(by_id[-len(CHAT_TOKENS) :], CHAT_TOKENS, strict=True):
        index = model["vocab"].pop(name)
        model["vocab"][chat_token] = index
        added.append({**added[0], "id": index, "content": chat_token})
    model["merges"] = model["merges"][: -len(CHAT_TOKENS)]
    chat_tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(json.dumps(state)),
        eos_token=EOS,
        pad_token=EOS,
        mask_token=MASK,
        model_max_length=tokenizer.model_max_length,
        clean_up_tokenization_spaces=False,
    )
    chat_tokenizer.chat_template = TEMPLATE
    return chat_tokenizer


def render(messages: list[dict[str, str]], add_generation_prompt: bool = False) -> str:
    """The text that the chat template makes of these messages."""
    turns = [f"<|{m['role']}|>{m['content']}{END}" for m in messages]
    return "".join(turns) + ("<|assistant|>" if add_generation_prompt else "")

"""Lets a model answer many prompts greedily, in batches, and counts the right answers."""

from __future__ import annotations

import re

from engine.training.selftext import continue_batch

ROWS = 32
SPARE = 4
Pair = tuple[str, str]  # prompt, answer


def answers(model, tokenizer, pairs: list[Pair]) -> list[str]:
    """The model's answers to the prompts of these (prompt, right answer) pairs, without the end-of-text token. An
    answer is cut if it is more than SPARE tokens longer than the right one."""
    budgets = [len(tokenizer(answer).input_ids) + SPARE for _, answer in pairs]
    order = sorted(range(len(pairs)), key=budgets.__getitem__)
    said = [""] * len(pairs)
    for i in range(0, len(order), ROWS):
        rows = order[i : i + ROWS]
        prompts = [tokenizer(pairs[j][0]).input_ids for j in rows]
        longest = max(budgets[j] for j in rows)
        texts = continue_batch(model, prompts, longest, 0.0, tokenizer.eos_token_id)
        for j, tokens in zip(rows, texts, strict=True):
            said[j] = tokenizer.decode(tokens[: budgets[j]], skip_special_tokens=True)
    return said


def is_right(prompt: str, answer: str, said: str) -> bool:
    """Whether the model's answer `said` equals the right answer. In the answer to a shuffle, the order of the words is
    free."""
    if prompt.startswith("Shuffle:"):
        return sorted(said.split()) == sorted(answer.split())
    return said == answer


def same_result(prompt: str, answer: str, said: str) -> bool:
    """Whether the last number in the model's answer `said` is the last number in the right answer."""
    numbers = [re.findall(r"\d+", text) for text in (answer, said)]
    return bool(numbers[1]) and numbers[0][-1] == numbers[1][-1]


def share_right(model, tokenizer, pairs: list[Pair]) -> float:
    said = answers(model, tokenizer, pairs)
    return sum(is_right(*pair, text) for pair, text in zip(pairs, said, strict=True)) / len(pairs)

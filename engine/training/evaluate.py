"""Measures a model: its bits per byte on each workload, and its share of right answers to held-out prompts."""

from __future__ import annotations

import itertools
import math
import random
from pathlib import Path

import torch
import torch.nn.functional as F

from engine.training.answers import share_right
from engine.training.corpus import ANSWER_ONLY, make_vocabulary, read_corpora
from engine.training.generators import (
    MAKERS,
    Example,
    chat_tasks,
    edits,
    examples,
    is_held_out,
    operations,
)
from engine.training.packing import Encoder
from engine.training.selftext import sampling_of
from engine.training.tokenizer import render


def held_out_documents(data: Path, per_workload: int) -> dict[str, list[Example]]:
    """Workload -> its first ``per_workload`` held-out documents, which are the same in every call."""
    texts = read_corpora(data, "valid")
    vocabulary = make_vocabulary(texts)
    documents = {
        w: [Example(w, "", t) for t in t_all[:per_workload]] for w, t_all in texts.items() if t_all
    }
    for workload in MAKERS:
        stream = examples(workload, 1, vocabulary, held_out=True)
        documents[workload] = list(itertools.islice(stream, per_workload))
    return documents


@torch.inference_mode()
def bits_per_byte(model, encode: Encoder, documents: list[Example], longest: int = 512) -> float:
    """The model's bits per byte on the first ``longest`` tokens of each of these documents. Where the prompts are
    random words, only the answers are measured; otherwise whole documents."""
    bits = n_bytes = 0.0
    for document in documents:
        encoded = encode(document)
        tokens = torch.from_numpy(encoded.tokens[:longest].astype("int64"))[None]
        logits = model(input_ids=tokens, use_cache=False).logits[0, :-1].float()
        losses = F.cross_entropy(logits, tokens[0, 1:], reduction="none")
        counted = torch.from_numpy(encoded.counted[:longest])[1:]
        bits += losses[counted].sum().item() / math.log(2)
        text = document.answer if document.workload in ANSWER_ONLY else document.text
        share = min(1.0, longest / len(encoded.tokens))
        n_bytes += len(text.encode()) * share
    return bits / n_bytes


@torch.inference_mode()
def complete(
    model,
    tokenizer,
    prompt: list[int],
    new_tokens: int = 128,
    temperature: float = 0.0,
    seed: int = 0,
) -> str:
    """The text with which the model continues ``prompt``, without special tokens. temperature 0 is greedy."""
    torch.manual_seed(seed)
    ids = torch.tensor([prompt])
    room = model.config.max_position_embeddings - ids.shape[1]
    how = {"max_new_tokens": min(new_tokens, room), **sampling_of(temperature)}
    out = model.generate(ids, attention_mask=torch.ones_like(ids), **how)
    return tokenizer.decode(out[0, ids.shape[1] :], skip_special_tokens=True)


def _asked_in_chat(task):
    """A function that makes (prompt, answer) pairs from a chat task. The prompt is the task's first question in the
    chat template, and the answer is the task's first answer."""

    def make(rng: random.Random, vocabulary) -> tuple[str, str]:
        (_, question), (_, answer) = task(rng, vocabulary)[:2]
        return render([{"role": "user", "content": question}], add_generation_prompt=True), answer

    return make


def operations_report(model, tokenizer, data: Path, count: int) -> dict[str, float]:
    """Kind of prompt -> the share of ``count`` held-out prompts that the model answers right, greedily. The kinds are
    those of operations and edits and, if the tokenizer has a chat template, of chats."""
    vocabulary = make_vocabulary(read_corpora(data, "valid"))
    makers = {k.__name__: k for k in operations.KINDS} | {
        f"edit: {k.__name__}": k for k in edits.KINDS
    }
    if tokenizer.chat_template:
        tasks = chat_tasks.sums, chat_tasks.problem, chat_tasks.edit
        makers |= {f"chat: {task.__name__}": _asked_in_chat(task) for task in tasks}
    rng = random.Random("operations evaluation")
    shares = {}
    for name, make in makers.items():
        drawn = (make(rng, vocabulary) for _ in itertools.count())
        pairs = itertools.islice((p for p in drawn if is_held_out(p[0])), count)
        shares[name] = share_right(model, tokenizer, list(pairs))
    return shares


def report(model, tokenizer, data: Path, per_workload: int = 10) -> dict[str, float]:
    """The model's bits per byte on held-out documents of each workload, under the names "bpb <workload>"."""
    was_training = model.training
    model.eval()
    encode = Encoder(tokenizer)
    figures = {
        f"bpb {w}": bits_per_byte(model, encode, d)
        for w, d in held_out_documents(data, per_workload).items()
    }
    model.train(was_training)
    return figures

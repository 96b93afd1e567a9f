"""A tiny target whose text can be learned, and batches of this text, for tests of single students."""

import copy
from functools import cache
from itertools import takewhile

import torch
from transformers import LlamaForCausalLM

from engine.core.options import resolve
from engine.core.sampling import Sampling
from engine.core.text import TextRequest
from engine.loops import run_loop
from engine.parts.opening import language_model
from engine.rules import verifier
from engine.training.new_models import target_config
from engine.training.student import taught
from engine.training.students import student_class

VOCABULARY, LAYERS = 48, 4
SMALL = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 16,
}


@cache
def tiny_target():
    """Return a target with random weights, small enough for its text to be learned, large enough for the text to
    vary."""
    torch.manual_seed(3)
    made = LlamaForCausalLM(target_config(VOCABULARY, 0, LAYERS, **SMALL)).eval()
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            if parameter.dim() == 2:
                parameter.normal_(0, 0.25 if "embed" in name else 0.15)
    return made.requires_grad_(False)


@cache
def own_text():
    """Return text that the target writes by itself, int64 [48, 24]. An end of text is a token like any other."""
    torch.manual_seed(4)
    tokens = torch.randint(1, VOCABULARY, (48, 2))
    while tokens.shape[1] < 24:
        logits = tiny_target()(input_ids=tokens, use_cache=False).logits[:, -1]
        tokens = torch.cat([tokens, (logits / 0.3).softmax(-1).multinomial(1)], 1)
    return tokens


@cache
def greedy_text():
    """Return the target's greedy text after each of 16 tokens, int64 [16, 24]."""
    tokens = torch.arange(1, 17)[:, None]
    while tokens.shape[1] < 24:
        logits = tiny_target()(input_ids=tokens, use_cache=False).logits[:, -1]
        tokens = torch.cat([tokens, logits.argmax(-1, keepdim=True)], 1)
    return tokens


def student_of(key, target, *others, **options):
    """Return a student for this target. others: further things that it learns."""
    cls = student_class(key)
    return cls(target, resolve(key, cls.options, options), *others)


def begun(key="eagle", *others, **options):
    """Return a student of ``tiny_target``, and its part before the first lesson."""
    made = student_of(key, tiny_target(), *others, **options)
    made.prepare(own_text().flatten())
    torch.manual_seed(0)
    return made, made.start()


def agreeing(guess, text) -> int:
    """Return how many tokens of a guess are those of the text, up to the first that differs."""
    same = (one == other for one, other in zip(guess, text, strict=False))
    return len([*takewhile(bool, same)])


def lesson(made, tokens, index=0, counted=None):
    counted = torch.ones_like(tokens, dtype=torch.bool) if counted is None else counted
    return taught(made.target, made.feature_layers, tokens, counted, index, made.taught_tokens)


def learn(loss_of, part, steps, rate=3e-3):
    """A few steps of Adam. loss_of: index -> the loss of a batch. Returns all losses."""
    optimizer, losses = torch.optim.Adam(part.parameters(), rate), []
    for index in range(steps):
        loss = loss_of(index)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def learn_own_text(made, part, steps, rate=1e-2, windows=40, rows=10):
    """Learn from the first windows of ``own_text``, so many rows at a time."""

    def loss_of(index):
        batch = own_text()[(torch.arange(rows) + rows * index) % windows]
        return made.loss(part, lesson(made, batch, index))

    learn(loss_of, part, steps, rate)


def opened(target):
    """Return a copy of the target for the engine, which gives a module an attention function of its own."""
    return language_model(copy.deepcopy(target), None, "tiny", lean=False)


def written(model, drafter, sampling=None, rule="greedy") -> list[list[int]]:
    """Return the output of each step of a few texts."""
    outputs = []
    for prompt in ([7, 3, 9], [5, 20], [11], [30, 2, 4]):
        request = TextRequest(drafter, verifier(rule), sampling or Sampling(), prompt, 20)
        outputs += [step.output for step in run_loop(model, request)]
    return outputs

"""A tiny target whose text can be learned, and batches of this text, for tests of single students."""

from functools import cache

import torch
from transformers import LlamaForCausalLM

from engine.training.new_models import target_config
from engine.training.student import taught

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
    """A target with random weights, small enough for its text to be learned, large enough for the text to vary."""
    torch.manual_seed(3)
    made = LlamaForCausalLM(target_config(VOCABULARY, 0, LAYERS, **SMALL)).eval()
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            if parameter.dim() == 2:
                parameter.normal_(0, 0.25 if "embed" in name else 0.15)
    return made.requires_grad_(False)


@cache
def own_text():
    """Text that the target writes by itself, int64 [48, 24]; an end of text is a token like any other."""
    torch.manual_seed(4)
    tokens = torch.randint(1, VOCABULARY, (48, 2))
    while tokens.shape[1] < 24:
        logits = tiny_target()(input_ids=tokens, use_cache=False).logits[:, -1]
        tokens = torch.cat([tokens, (logits / 0.3).softmax(-1).multinomial(1)], 1)
    return tokens


@cache
def greedy_text():
    """The target's greedy text after each of 16 tokens, int64 [16, 24]."""
    tokens = torch.arange(1, 17)[:, None]
    while tokens.shape[1] < 24:
        logits = tiny_target()(input_ids=tokens, use_cache=False).logits[:, -1]
        tokens = torch.cat([tokens, logits.argmax(-1, keepdim=True)], 1)
    return tokens


def lesson(target, made, tokens, index=0):
    counted = torch.ones_like(tokens, dtype=torch.bool)
    return taught(target, made.feature_layers, tokens, counted, index)


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


def learn_own_text(made, part, steps, rate=1e-2):
    """Learn from the first 40 windows of ``own_text``, ten at a time."""

    def loss_of(index):
        batch = own_text()[index % 4 * 10 :][:10]
        return made.loss(part, lesson(tiny_target(), made, batch, index))

    learn(loss_of, part, steps, rate)

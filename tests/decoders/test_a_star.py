"""A*-Decoding: how well the scorer knows worked sums, and the search beside a plain script."""

from functools import cache

import torch

from engine.core.sampling import Sampling, position_noise
from engine.methods.a_star.drafter import AStarDrafter
from engine.methods.a_star.recipe import Sums
from engine.parts.loading import load_models
from presets import family
from tests.drafters.writing import steps_of, text_of, usual
from tests.engine.family import embedded_module, embedded_tokenizer

TEXT, SAMPLING, COUNT = "Add step by step: 47 + 85\n", Sampling(1.8, seed=3), 44


@cache
def models():
    return load_models(family(), AStarDrafter.needs)


# ---- The scorer ---------------------------------------------------------------------------------


@cache
def sums():
    return Sums(embedded_module(), embedded_tokenizer())


def test_the_scorer_knows_right_steps_of_sums_that_it_has_not_learned_from():
    """Sums with a planted digit. Shuffled among the steps, its odds say nothing, and one answer for all would do far worse."""
    found = sums().labelled(sums().planted(99, 24, held_out=True))
    with torch.no_grad():
        odds = models().part("a_star")(found.signals)
    assert found.auc(odds) > 0.95 and found.accuracy(odds) > 0.9
    assert found.accuracy(odds) > max(found.share, 1 - found.share) + 0.2
    torch.manual_seed(0)
    assert found.auc(odds[torch.randperm(len(odds))]) < 0.65


# ---- The search ---------------------------------------------------------------------------------


def drawn(text, place, seed):
    """Return a token by plain sampling, and its log p at temperature 1."""
    target = models().target
    logits = target.session(len(text)).extend(text).float()
    p = (logits / SAMPLING.temperature).softmax(-1)
    token = int((p / position_noise(seed, place, len(p))).argmax())
    return token, float(logits.log_softmax(-1)[token])


def searched(prompt, branches, expansions):
    """Search with a plain script that reads every text from its beginning. Returns (text, number of states reached on
    the way)."""
    target = models().target
    ends, said = target.end_tokens, target.tokenizer.decode
    states = [(0.0, 0, (), 0.0, ())]  # f, minus length, path, h, log p of each token
    seed, expanded, reached = SAMPLING.seed, 0, 0
    while True:
        f, _, path, h, logs = states.pop(0)
        if path and (path[-1] in ends or len(path) == COUNT):
            return list(path), reached
        for _ in range(branches if expanded < expansions else 1):
            new, said_of = path, logs
            while new == path or not (
                new[-1] in ends
                or len(new) == COUNT
                or ("\n" in said([new[-1]]) and said(new[len(path) :]).strip())
            ):
                text = [*prompt, *new]
                token, log = drawn(text, len(text), seed)
                new, said_of = (*new, token), (*said_of, log)
            seed += 1_000_003
            if all(state[2] != new for state in states):
                below = 1 - models().part("a_star").right(said_of, len(path))
                g = f - h + max(0.0, below - h)
                states.append((g + below, -len(new), new, below, said_of))
                reached += 1
        expanded += 1
        states.sort(key=lambda state: state[:2])


def test_the_search_is_that_of_the_plain_script():
    prompt = models().target.tokenizer(TEXT)["input_ids"]
    made = usual("a_star", models(), branches=3, expansions=2)
    written = text_of(steps_of(models(), made, prompt, COUNT, SAMPLING, "sampler_match"))
    expected, reached = searched(prompt, 3, 2)
    assert written == expected and reached > 3

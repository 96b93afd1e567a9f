"""Decoders that write several texts at once, each beside transformers' own or a plain script that reads every text anew."""

import copy
import itertools
import math

import pytest
import torch

from engine.core.sampling import Sampling, position_noise
from engine.errors import UserError
from engine.methods import drafters
from engine.proof import first_finish_figures, listed_texts
from tests.drafters.writing import begun, built, usual
from tests.drafters.writing import steps_of as written
from tests.drafters.writing import text_of as tokens_of
from tests.verifiers.tiny import tiny_models

PROMPT, COUNT, END = (3, 5, 7, 3, 5), 14, 2
MODELS = tiny_models(16, end_token=END)
MODULE = copy.deepcopy(MODELS.target.model)
MODULE.set_attn_implementation("sdpa")


def steps_of(key, sampling=None, prompt=PROMPT, count=COUNT, **options):
    made = built(key, MODELS, **options)
    return written(MODELS, made, prompt, count, sampling, "sampler_match"), made


def text_of(*arguments, **named):
    return tokens_of(steps_of(*arguments, **named)[0])


@torch.no_grad()
def laws(text):
    """Return p [V] after a text, read from its beginning."""
    return MODULE(torch.tensor([text])).logits[0, -1].softmax(-1)


# ---- Beams --------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1, 2, 3, 5])
@pytest.mark.parametrize("penalty", [0.0, 1.0, 2.0])
def test_one_group_is_the_beam_search_of_transformers(width, penalty):
    for prompt in (PROMPT, (1, 4), (9, 9, 1, 0, 6, 11)):
        ids = torch.tensor([prompt])
        out = MODULE.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            num_beams=width,
            length_penalty=penalty,
            do_sample=False,
            max_new_tokens=COUNT,
            eos_token_id=END,
            pad_token_id=END,
        )
        expected = out[0, len(prompt) :].tolist()
        found = text_of("diverse_beam", None, prompt, width=width, groups=1, length_penalty=penalty)
        if width > 1:
            assert found == expected
        else:  # one beam of transformers is greedy decoding, which stops at its first end
            assert found[: found.index(END) + 1 if END in found else None] == expected


def diverse(prompt, width, groups, diversity):
    """Return the result of diverse beam search, with every text read from its beginning."""
    beams = [[(0.0, ())] for _ in range(groups)]
    ended = [[] for _ in range(groups)]
    while any(beams):
        taken = []
        for group, running in enumerate(beams):
            found = []
            for score, path in running:
                for token, p in enumerate(laws([*prompt, *path]).tolist()):
                    cost = diversity * taken.count(token)
                    found.append((score + math.log(p) - cost, (*path, token)))
            found.sort(reverse=True)
            over = lambda path: path[-1] == END or len(path) == COUNT
            ended[group] += [(s / len(t), t) for s, t in found[:width] if over(t)]
            ended[group] = sorted(ended[group], reverse=True)[:width]
            beams[group] = [(s, t) for s, t in found[: 2 * width] if not over(t)][:width]
            full = len(ended[group]) == width and beams[group]
            if full and beams[group][0][0] / len(beams[group][0][1]) <= ended[group][-1][0]:
                beams[group] = []
            taken += [path[-1] for _, path in beams[group]]
    return list(max(itertools.chain(*ended))[1])


@pytest.mark.parametrize("width, groups, diversity", [(2, 2, 0.5), (1, 3, 2.0), (2, 3, 0.0)])
def test_groups_avoid_each_others_words_as_in_a_plain_script(width, groups, diversity):
    options = {"width": width, "groups": groups, "diversity": diversity}
    assert text_of("diverse_beam", **options) == diverse(PROMPT, **options)


def test_diversity_spreads_the_texts():
    spread = {}
    for diversity in (0.0, 5.0):
        _, made = steps_of("diverse_beam", width=1, groups=4, diversity=diversity)
        spread[diversity] = len({one.path for one in made.candidates})
    assert spread == {0.0: 1, 5.0: 4}


def test_the_siblings_of_a_tree_can_be_spread():
    """Every drafted path is unchanged in number; fewer of its tokens are the same, and the text is the greedy one."""
    plain = text_of("none")
    last = {}
    for diversity in (0.0, 8.0):
        options = {"width": 4, "length": 3, "diversity": diversity}
        steps = written(MODELS, usual("rsd_s", MODELS, **options), PROMPT, COUNT)
        assert tokens_of(steps) == plain
        tree = steps[0].tree
        last[diversity] = {t for t, d in zip(tree.tokens, tree.depths, strict=True) if d == 3}
    assert len(last[8.0]) == 4 > len(last[0.0])


# ---- First Finish Search ------------------------------------------------------------------------


REPEATED, LONGER = (3, 5, 7, 9, 3, 5, 7, 9, 3, 5), 24


def drawn(seed, sampling):
    """Return a text by plain sampling."""
    text = []
    while len(text) < LONGER and END not in text:
        p = (laws([*REPEATED, *text]).log() / sampling.temperature).softmax(-1)
        noise = position_noise(seed, len(REPEATED) + len(text), 16)
        text.append(int((p / noise).argmax()))
    return text


def test_the_first_to_end_is_the_shortest_in_lockstep_and_with_drafts_not_always():
    """With drafts the texts stay the same; which of them is first in time is another matter."""
    longer, lengths = [], set()
    for seed in range(8, 18):
        sampling = Sampling(0.4, seed=seed)
        texts = [drawn((seed + 1_000_003 * lane) % 2**63, sampling) for lane in range(8)]
        best = min((text for text in texts if text[-1] == END), key=len, default=texts[0])
        steps, _ = steps_of("first_finish", sampling, REPEATED, LONGER, lanes=8)
        assert tokens_of(steps) == best
        assert sum(step.passes["target"] for step in steps) == len(best)
        found = text_of("first_finish", sampling, REPEATED, LONGER, lanes=8, pace="drafted")
        assert found in texts and len(found) >= len(best)
        longer.append(len(found) > len(best))
        lengths.add(len(best))
    assert any(longer) and not all(longer) and len(lengths) > 2


def test_one_lane_is_plain_decoding():
    for pace in ("lockstep", "drafted"):
        for seed in (1, 2):
            sampling = Sampling(0.8, seed=seed)
            assert text_of("first_finish", sampling, lanes=1, pace=pace) == text_of(
                "none", sampling
            )


# ---- The best span ------------------------------------------------------------------------------


@pytest.mark.parametrize("prompt", [PROMPT, (1, 4, 9, 1, 4, 6), tuple(range(15, 2, -1))])
def test_the_answer_is_the_likeliest_span_of_all(prompt):
    scores = {}
    for first, last in itertools.combinations(range(len(prompt) + 1), 2):
        span = prompt[first:last]
        if len(span) <= 4:
            text, score = list(prompt), 0.0
            for token in (*span, END):
                score += math.log(laws(text)[token])
                text.append(token)
            scores[span] = score
    steps, made = steps_of("extractive", None, prompt, longest=4)
    assert tuple(tokens_of(steps)) == (*max(scores, key=scores.get), END)
    assert made.passes()["target"] <= 5


def test_a_prompt_without_a_span_is_one_sentence():
    endless = tiny_models(16)
    with pytest.raises(UserError, match="No run of tokens"):
        written(endless, usual("extractive", endless, longest=3), PROMPT, COUNT)


# ---- All of them --------------------------------------------------------------------------------

SEARCHES = [cls for cls in drafters().values() if cls.loop == "searching"]


@pytest.mark.parametrize("cls", SEARCHES, ids=lambda cls: cls.key)
def test_every_pass_is_a_step_and_says_which_other_law_it_follows(cls):
    steps, made = steps_of(cls.key, Sampling(0.8, seed=3), **cls.trial)
    assert cls.text_law and steps[-1].stop
    assert sum(step.passes.get("target", 0) for step in steps) == made.passes()["target"]
    assert all(step.p is None and step.final is None for step in steps)


def test_more_rows_than_are_possible_are_one_sentence():
    made = usual("diverse_beam", MODELS, width=16, groups=8)
    with pytest.raises(UserError, match="rows"):
        next(begun(MODELS, made, PROMPT, 50))


# ---- The figure of First Finish Search ------------------------------------------------------------


def test_the_law_of_the_first_of_two_is_that_of_all_pairs():
    law = first_finish_figures.texts()
    assert sum(law.values()) == pytest.approx(1)
    few = {text: share for text, share in law.items() if share > 0.004}
    few = {text: share / sum(few.values()) for text, share in few.items()}
    count = lambda text: (
        first_finish_figures.with_drafts(text) if text[-1] == listed_texts.END else math.inf
    )
    pairs = dict.fromkeys(few, 0.0)
    for one, other in itertools.product(few, repeat=2):
        pairs[one if count(one) <= count(other) else other] += few[one] * few[other]
    found = first_finish_figures.first_of(few, first_finish_figures.with_drafts, 2)
    assert found == pytest.approx(pairs)


def test_drafts_change_the_law_of_the_answer():
    laws = first_finish_figures.measured().laws
    assert all(sum(law.values()) == pytest.approx(1) for law in laws.values())
    assert listed_texts.apart(laws["in lockstep"], laws["with drafts"]) > 0.05


def test_the_passes_of_the_figure_are_those_of_a_run():
    for seed in range(6):
        sampling = Sampling(0.4, seed=seed)
        options = {"lanes": 1, "pace": "drafted", "length": first_finish_figures.LENGTH}
        steps, _ = steps_of("first_finish", sampling, REPEATED, LONGER, **options)
        text = tuple(tokens_of(steps))
        if text[-1] == END:
            passes = sum(step.passes["target"] for step in steps)
            assert first_finish_figures.with_drafts(text, REPEATED) == passes

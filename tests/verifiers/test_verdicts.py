"""What a verdict says about any tree."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.catalogue import catalogue
from engine.core.chance import JudgeChance
from engine.core.sampling import Sampling, draw, position_noise
from engine.core.tree import ROOT, DraftTree, Draw
from engine.errors import UserError
from engine.rules import Case, verifier, verifiers
from engine.rules.rejection import SiblingTrial
from tests.trees import trees
from tests.verifiers.test_exactness import consistent

V = 6
many = settings(max_examples=60, deadline=None, derandomize=True)
seeds = st.integers(0, 10**6)


def rows(seed, size, temperature=1.0):
    logits = torch.randn(size, V, generator=torch.Generator().manual_seed(seed))
    if temperature == 0:
        return torch.nn.functional.one_hot(logits.argmax(-1), V).float()
    return logits.softmax(-1)


def judge(key, tree, p, temperature=1.0, seed=0, position=10):
    sampling = Sampling(temperature=temperature, seed=seed)
    return verifier(key).judge(Case(tree, p, None, sampling, position, JudgeChance(seed)))


def test_registry():
    assert {"greedy", "rejection", "sampler_match"} <= verifiers().keys()
    for key, rule in verifiers().items():
        assert rule.key == key and type(verifier(key)) is rule
        assert rule.lossless_with(set()) == bool(rule.exact_kinds)
        assert not rule.lossless_with({"one_hot", "top secret"})
    for key in ("greedy", "rejection", "sampler_match"):
        assert verifiers()[key].lossless_with(["one_hot", "iid", "without_replacement"])
    with pytest.raises(UserError, match="no verifier 'no such rule'"):
        verifier("no such rule")


def test_a_lossy_rule_says_so_wherever_it_appears():
    lossy = [one for one in catalogue()["verifiers"] if one["kind"] == "lossy"]
    assert {"typical", "bild", "gad", "lud", "rapid", "gsd"} <= {one["key"] for one in lossy}
    for one in lossy:
        assert "lossy" in one["title"] and "lossy" in one["summary"], one["key"]
    by_default = {one["key"]: one for one in catalogue()["drafters"]}
    assert not any(by_default[key]["lossless"] for key in ("bild", "lud", "reduced_cache"))


def test_greedy_is_for_temperature_zero():
    with pytest.raises(ValueError):
        judge("greedy", DraftTree(), rows(0, 1))


@pytest.mark.parametrize("key", ["greedy", "rejection", "sampler_match"])
def test_no_nodes_is_a_bonus(key):
    """Plain decoding: one token, the same under every rule that may be used there."""
    temperature = 0.0 if key == "greedy" else 1.0
    p = rows(3, 1, temperature)
    verdict = judge(key, DraftTree(), p, temperature, seed=5)
    assert (verdict.final, verdict.accepted, verdict.walk) == ("bonus", [], [ROOT])
    assert verdict.final_token == draw(p[0], position_noise(5, 10, V))
    assert not (verdict.status or verdict.judgements or verdict.residuals)


@many
@given(tree=trees(V), seed=seeds)
def test_greedy_follows_the_argmax(tree, seed):
    p = rows(seed, len(tree) + 1, 0.0)
    verdict = judge("greedy", tree, p, 0.0)
    consistent(tree, verdict)
    place, path = ROOT, []
    while True:
        best = int(p[place + 1].argmax())
        nexts = [n for n in range(len(tree)) if (tree.parents[n], tree.tokens[n]) == (place, best)]
        if not nexts:
            break
        place = nexts[0]
        path.append(place)
    assert verdict.accepted == path and verdict.final_token == best
    shown = {j.node: (j.p, j.q, j.accept, j.coin) for j in verdict.judgements}
    everyone = [child for place in verdict.walk for child in tree.children(place)]
    assert [j.node for j in verdict.judgements] == everyone
    for node, entry in shown.items():
        hit = float(node in path)
        assert entry == (hit, None, hit, None)


@many
@given(tree=trees(V), seed=seeds)
def test_sampler_match_writes_the_text_of_plain_decoding(tree, seed):
    p = rows(seed, len(tree) + 1)
    verdict = judge("sampler_match", tree, p, seed=seed)
    consistent(tree, verdict)
    written = [tree.tokens[node] for node in verdict.accepted] + [verdict.final_token]
    for depth, (place, token) in enumerate(zip(verdict.walk, written, strict=True)):
        plain = judge("rejection", DraftTree(), p[place + 1 : place + 2], 1.0, seed, 10 + depth)
        assert plain.final_token == token
    everyone = [child for place in verdict.walk for child in tree.children(place)]
    assert [j.node for j in verdict.judgements] == everyone
    for judgement in verdict.judgements:
        row = p[tree.parents[judgement.node] + 1]
        assert judgement.p == float(row[tree.tokens[judgement.node]])
        assert judgement.accept in (0.0, 1.0) and judgement.coin is None
    assert not verdict.residuals


@many
@given(tree=trees(V), seed=seeds)
def test_rejection_tells_what_it_did(tree, seed):
    p = rows(seed, len(tree) + 1)
    verdict = judge("rejection", tree, p, seed=seed)
    consistent(tree, verdict)
    kept = {j.node for j in verdict.judgements if j.coin < j.accept}
    assert kept == set(verdict.accepted)
    for judgement in verdict.judgements:
        assert judgement.rule == tree.draws[tree.parents[judgement.node]][0].kind
        assert (judgement.rule == "one_hot") == (judgement.q == 1.0)
    first = verdict.judgements[:1]
    for judgement in first:
        assert abs(judgement.p - float(p[0, tree.tokens[judgement.node]])) < 1e-6
    refused = [j for j in verdict.judgements if j.node not in kept]
    assert set(verdict.residuals) == {tree.parents[j.node] for j in refused}
    for judgement in refused:
        residual = verdict.residuals[tree.parents[judgement.node]]
        assert residual[tree.tokens[judgement.node]] == 0
        assert abs(float(residual.sum()) - 1) < 1e-9
    place = verdict.walk[-1]
    law = verdict.residuals[place] if verdict.final == "recovered" else p[place + 1]
    noise = position_noise(seed, 10 + len(verdict.accepted), V)
    assert verdict.final_token == draw(law, noise)
    again = judge("rejection", tree, p, seed=seed)
    assert again.judgements == verdict.judgements and again.final_token == verdict.final_token


@many
@given(tree=trees(V), seed=seeds)
def test_every_rule_is_greedy_at_temperature_zero(tree, seed):
    """One-hot p: rejection and sampler-match write what greedy writes."""
    for siblings in tree.draws.values():  # a draft at temperature 0 is one-hot itself
        nodes = dict.fromkeys(drawn.node for drawn in siblings)
        siblings[:] = [Draw(node, "one_hot", None) for node in nodes]
    p = rows(seed, len(tree) + 1, 0.0)
    kinds = {"one_hot"}
    exact = [
        key
        for key, rule in verifiers().items()
        if rule.lossless_with(kinds) and rule.judges("any", kinds)
    ]
    if all(len(siblings) == 1 for siblings in tree.draws.values()):
        exact += ["block", "greedy_multipath"]
    verdicts = [judge(key, tree, p, 0.0, seed) for key in exact]
    assert len({(tuple(v.accepted), v.final_token, v.final) for v in verdicts}) == 1


def test_the_walk_touches_only_its_own_rows():
    """Rows off the path may hold anything: nothing is computed from them."""
    tree = DraftTree()
    first = tree.draw(ROOT, 1)
    other = tree.draw(ROOT, 2)
    tree.draw(other, 3)
    p = rows(0, 4)
    p[0] = torch.nn.functional.one_hot(torch.tensor(1), V).float()
    p[other + 1 :] = torch.nan
    for key in ("rejection", "sampler_match"):
        verdict = judge(key, tree, p)
        assert verdict.accepted == [first] and verdict.final == "bonus"


def test_a_refusal_that_leaves_no_mass_keeps_p():
    """p = q up to rounding, yet the token is refused: the replacement comes from p."""
    p = torch.tensor([0.25, 0.75])
    trial = SiblingTrial(p, [p.clone()])
    trial.refuse(0, "iid", Draw(0, "iid", 0))
    assert torch.equal(trial.p, p.double())

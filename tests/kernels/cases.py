"""Random cases for the kernels' tests, each determined by a few small numbers."""

import torch
from torch import Tensor

from engine.core.chance import JudgeChance
from engine.core.sampling import Sampling, position_noise
from engine.core.tree import DraftTree
from engine.fast.kernels.bits import AncestorBits, pack
from engine.fast.kernels.flat_tree import FlatTree
from engine.rules import Case, Verdict, verifier

POSITION = 11  # of the first drafted token
WORDS = {"status": ("ignored", "rejected", "accepted"), "final": ("bonus", "recovered")}


def mask_of(tree: DraftTree, prefix: int, fed_before: int = 0, batch: int = 1) -> AncestorBits:
    """Return the mask of root and tree. fed_before: the number of rows that are in the cache already."""
    seen = tree.ancestor_mask()[fed_before:]
    words = pack(seen).expand(batch, -1, -1).contiguous()
    depths = torch.tensor([[0, *tree.depths]] * batch, dtype=torch.int32)
    return AncestorBits(words, depths, torch.full((batch,), prefix, dtype=torch.int32), prefix)


def attention_inputs(mask: AncestorBits, heads, kv_heads, head, dtype=torch.float32, spare=3):
    """Return query, key and value. The spare rows behind the scratch rows hold NaN and must not be read."""
    batch = mask.words.shape[0]
    end = int(mask.prefix.max()) + mask.scratch
    query = torch.randn(batch, mask.rows, heads, head).to(dtype).transpose(1, 2)
    cache = torch.randn(2, batch, kv_heads, end + spare, head).to(dtype)
    for index, prefix in enumerate(mask.prefix.tolist()):
        cache[:, index, :, prefix + mask.scratch :] = float("nan")
    return query, cache[0], cache[1]


def peaked(*shape: int) -> Tensor:
    """Return distributions with a few likely tokens."""
    return torch.randn(*shape).mul(2).softmax(-1)


def with_random_q(tree: DraftTree, vocabulary: int) -> DraftTree:
    """Return the tree with random distributions q under which its draws are possible."""
    tree.laws[:] = [peaked(vocabulary) for _ in tree.laws]
    return tree


def coins_of(seed: int, count: int) -> Tensor:
    """Return the first ``count`` uniforms that a verifier would toss from this seed, in order."""
    chance = JudgeChance(seed)
    return torch.tensor([chance.toss() for _ in range(count)], dtype=torch.float64)


def noise_of(seed: int, depths: int, vocabulary: int) -> Tensor:
    rows = [position_noise(seed, POSITION + depth, vocabulary) for depth in range(depths + 1)]
    return torch.stack(rows)


def sampling_of(rule: str, seed: int) -> Sampling:
    return Sampling(0.0 if rule == "greedy" else 1.0, seed=seed)


def verdict_of(rule: str, tree: DraftTree, p: Tensor, seed: int) -> Verdict:
    """Return the verdict of the engine's own verifier."""
    case = Case(tree, p, None, sampling_of(rule, seed), POSITION, JudgeChance(seed))
    return verifier(rule).judge(case)


def same_verdict(run, rule: str, tree: DraftTree, p: Tensor, seed: int) -> None:
    """Compare verify_tree (either form) with the engine's verifier."""
    flat = FlatTree.of(tree, p.shape[-1])
    coins = coins_of(seed, flat.draws.numel() + 1)
    noise = noise_of(seed, max(tree.depths, default=0), p.shape[-1])
    found, expected = run(rule, p, flat, coins, noise), verdict_of(rule, tree, p, seed)
    kept, token, final, tossed = found.result.tolist()
    assert found.path.tolist()[:kept] == expected.accepted
    assert token == expected.final_token
    assert WORDS["final"][final] == expected.final
    assert [WORDS["status"][state] for state in found.status.tolist()] == expected.status
    if rule == "rejection":
        assert tossed == len(expected.judgements)
        _same_weights(found, flat, expected)


def _same_weights(found, flat: FlatTree, verdict: Verdict) -> None:
    """Compare p, q and accept of each judged draw, in the order of the judgements."""
    judged = iter(verdict.judgements)
    first = flat.first.tolist()
    for place in verdict.walk:
        for draw in range(first[place + 1], first[place + 2]):
            entry = next(judged)
            assert abs(float(found.p[draw]) - entry.p) < 1e-9
            assert abs(float(found.q[draw]) - entry.q) < 1e-9
            assert abs(float(found.accept[draw]) - entry.accept) < 1e-9
            if entry.coin < entry.accept:
                break

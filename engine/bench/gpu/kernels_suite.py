"""The suite ``kernels``: compares the time of each kernel with a floor, and attention also with other implementations.

A floor is the least time that the GPU needs for the bytes and operations of the work.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.bench.gpu import costs
from engine.bench.gpu.costs import LLAMA_8B, Ceilings, Shape
from engine.bench.gpu.gpu_goals import kernel_goals
from engine.bench.gpu.parts import Part, against_floor, attempt, measure_parts
from engine.bench.gpu.steps import binary_tree
from engine.bench.gpu.timing import Deadline, captured, here, milliseconds
from engine.bench.report import Report
from engine.bench.suite import Cards
from engine.fast.kernels.bits import AncestorBits
from engine.fast.kernels.tree_attention import visible
from engine.parts.loading import ModelPaths

SECONDS = 220
BF16 = torch.bfloat16
WRONG = 0.02  # relative error of a peer in bf16 above which its time says nothing


@dataclass(frozen=True)
class Sizes:
    """The sizes at which the kernels are measured. shape: the decoder's sizes. attention: pairs of the number of rows,
    root included, and the length of the prefix. Trees of 9 and 65 rows after the longest prefix are also compared with
    FlexAttention. vocabulary: the vocabulary size in the measurement of judging."""

    shape: Shape
    attention: tuple[tuple[int, int], ...]
    vocabulary: int

    @property
    def longest(self) -> int:
        return max(prefix for _, prefix in self.attention)


FULL = Sizes(
    LLAMA_8B,
    ((9, 32768), (65, 32768), (1, 32768), (8, 32768), (64, 32768), (9, 2048), (65, 2048), (65, 0)),
    vocabulary=128256,
)


def measure(paths: ModelPaths, workloads: Cards, quick: bool) -> Report:
    return measure_parts("kernels", SECONDS, partial(parts, FULL), kernel_goals)


def parts(sizes: Sizes, found: Ceilings, deadline: Deadline) -> Iterator[Part]:
    for rows, prefix in sizes.attention:
        name = f"attention, {rows} rows, prefix {prefix}"
        yield name, partial(_attention, name, rows, prefix, sizes, found), 25
    for rule in ("greedy", "rejection", "sampler_match"):
        yield f"verify_tree {rule}", partial(_verify, rule, sizes, found), 10
    yield "kv_commit", partial(_commit, sizes, found), 10


def _attention_inputs(rows: int, prefix: int, shape: Shape):
    tree, device = binary_tree(rows - 1), here()
    query = torch.randn(1, rows, shape.heads, shape.head, device=device).to(BF16).transpose(1, 2)
    cache = torch.randn(2, 1, shape.kv_heads, prefix + rows, shape.head, device=device).to(BF16)
    depths = torch.tensor([0, *tree.depths])
    return query, cache[0], cache[1], AncestorBits.of(tree.ancestor_mask(), depths, prefix, device)


def _attention(name: str, rows: int, prefix: int, sizes: Sizes, found: Ceilings) -> list[dict]:
    from engine.fast.kernels.tree_attention import tree_attention_reference, tree_attention_triton

    query, key, value, mask = _attention_inputs(rows, prefix, sizes.shape)
    expected = tree_attention_reference(query.float(), key.float(), value.float(), mask)
    error = relative_error(tree_attention_triton(query, key, value, mask), expected)
    ours = captured(lambda: tree_attention_triton(query, key, value, mask))
    row = against_floor(
        name, milliseconds(ours), costs.attention(sizes.shape, rows, prefix), found, error=error
    )
    rivals = dict(SDPA)
    if prefix == sizes.longest and rows in (9, 65):
        rivals |= FLEX
    for label, peer in rivals.items():
        time, problem = attempt(
            lambda peer=peer: _peer_time(peer(query, key, value, mask), expected)
        )
        if problem is None:
            row |= {f"{label}_ms": time, f"{label}_times_ours": time / row["ms"]}
        else:
            row[f"{label}_problem"] = problem
    return [row | _of_the_faster("sdpa", row) | _of_the_faster("flex", row)]


def _peer_time(call: Callable[[], torch.Tensor], expected: torch.Tensor) -> float:
    """The milliseconds of another implementation of attention. Raises ArithmeticError if its output is wrong."""
    error = relative_error(call(), expected)
    if error > WRONG:
        raise ArithmeticError(f"its output is off by {error:.2g}")
    return milliseconds(captured(call))


def _of_the_faster(family: str, row: dict) -> dict:
    """The time of another implementation of attention divided by our time, as one entry. family: ``sdpa`` or ``flex``,
    whose fastest measured variant counts. Returns an empty dict if no variant ran."""
    ratios = [v for k, v in row.items() if k.startswith(f"{family}_") and k.endswith("_times_ours")]
    return {f"{family}_times_ours": min(ratios)} if ratios else {}


def relative_error(found: torch.Tensor, expected: torch.Tensor) -> float:
    """The norm of the difference divided by the norm of ``expected``. If that is not finite, returns 1, an error that
    no check accepts."""
    error = float((found.float() - expected).norm() / expected.norm())
    return error if math.isfinite(error) else 1.0


def _verify(rule: str, sizes: Sizes, found: Ceilings) -> list[dict]:
    from engine.fast.kernels.flat_tree import FlatTree
    from engine.fast.kernels.verify_tree import verify_tree_reference, verify_tree_triton

    vocabulary, nodes, device = sizes.vocabulary, 8, here()
    rows = (torch.randn(nodes + 1, vocabulary, device=device) * 3).softmax(-1)
    tree = FlatTree.of(binary_tree(nodes, rows[0].cpu()), vocabulary, device)
    coins = torch.rand(tree.draws.numel(), dtype=torch.float64, device=device)
    noise = torch.empty(nodes + 1, vocabulary, device=device).exponential_()
    expected = verify_tree_reference(rule, rows, tree, coins, noise).result.tolist()
    same = verify_tree_triton(rule, rows, tree, coins, noise).result.tolist() == expected
    call = captured(lambda: verify_tree_triton(rule, rows, tree, coins, noise))
    with_q = tree.q.shape[0] if rule == "rejection" else 0
    cost = costs.verify(rule, nodes + 1, vocabulary, with_q)
    row = against_floor(f"verify_tree {rule}, 8 nodes", milliseconds(call), cost, found, same=same)
    return [row]


def _commit(sizes: Sizes, found: Ceilings) -> list[dict]:
    from engine.fast.kernels.kv_commit import addresses_of, kv_commit_triton

    shape, moved = sizes.shape, 6
    buffers = [
        torch.randn(1, shape.kv_heads, 4096, shape.head, device=here()).to(BF16)
        for _ in range(2 * shape.layers)
    ]
    rows = [0, *range(2, 2 * moved + 1, 2)]  # the root stays; all other rows move
    numbers = torch.tensor([2048, moved + 1, *rows], dtype=torch.int32, device=here())
    addresses = addresses_of(buffers)
    call = captured(
        lambda: kv_commit_triton(buffers, numbers[:1], numbers[2:][None], numbers[1:2], addresses)
    )
    cost = costs.commit(len(buffers), shape.kv_heads, shape.head, moved)
    name = f"kv_commit {moved} rows, {shape.layers} layers"
    return [against_floor(name, milliseconds(call), cost, found)]


def sdpa(query: Tensor, key: Tensor, value: Tensor, mask: AncestorBits) -> Callable[[], Tensor]:
    """Return a function that computes attention with SDPA. The dense mask is built before the function is returned, so
    it is not timed."""
    dense = visible(mask)[None, None]
    return lambda: F.scaled_dot_product_attention(
        query, key, value, attn_mask=dense, enable_gqa=True
    )


def sdpa_repeated(query: Tensor, key: Tensor, value: Tensor, mask: AncestorBits):
    """Return a function that computes attention with SDPA and with a copy of the KV heads for each query head, which
    SDPA's fused kernels require if there is a mask. Mask and copies are built before the function is returned, so they
    are not timed."""
    groups, dense = query.shape[1] // key.shape[1], visible(mask)[None, None]
    key, value = (tensor.repeat_interleave(groups, 1) for tensor in (key, value))
    return lambda: F.scaled_dot_product_attention(query, key, value, attn_mask=dense)


def flex(
    query: Tensor, key: Tensor, value: Tensor, mask: AncestorBits, whole: bool = False
) -> Callable[[], Tensor]:
    """Return a function that computes attention with FlexAttention, compiled on a GPU. The block mask is built before
    the function is returned, so it is not timed.

    whole: use FlexAttention's kernel for long texts. By itself FlexAttention would choose its kernel for few rows,
    which may fail on this GPU.
    """
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    prefix = int(mask.prefix[0])
    dense = visible(mask)[:, prefix:].contiguous()
    last_row, last_column = (size - 1 for size in dense.shape)

    def seen(batch, head, row, column):
        # FlexAttention's tiles reach beyond the tree, and read the mask there too
        own = (column - prefix).clamp(min=0, max=last_column)
        return (column < prefix) | dense[row.clamp(max=last_row), own]

    rows, columns = query.shape[2], key.shape[2]
    blocks = create_block_mask(seen, None, None, rows, columns, device=query.device)
    attend = torch.compile(flex_attention, dynamic=False) if query.is_cuda else flex_attention
    options = {"FORCE_USE_FLEX_ATTENTION": True} if whole else None
    return lambda: attend(
        query, key, value, block_mask=blocks, enable_gqa=True, kernel_options=options
    )


SDPA = {"sdpa_as_it_is": sdpa, "sdpa_repeated": sdpa_repeated}
FLEX = {"flex_as_it_chooses": flex, "flex_whole": partial(flex, whole=True)}

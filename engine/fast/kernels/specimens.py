"""Specimens: launches with the shapes of real models, which are compiled to prove that every kernel compiles.

A specimen is a function of the GPU to plan for. It makes its launches on empty CPU tensors, and nothing is run.
"""

from collections.abc import Callable

import torch

from engine.core.sampling import Sampling
from engine.fast.kernels.attention_plan import plan
from engine.fast.kernels.bits import AncestorBits
from engine.fast.kernels.flat_tree import FlatTree
from engine.fast.kernels.hardware import Gpu
from engine.fast.kernels.kv_commit import kv_commit_triton
from engine.fast.kernels.position_noise import noise_rows_triton
from engine.fast.kernels.tree_attention import tree_attention_triton
from engine.fast.kernels.truncation import truncated_triton
from engine.fast.kernels.verify_tree import verify_tree_triton

BF16, FP16, FP32 = torch.bfloat16, torch.float16, torch.float32
VOCABULARY = 4096  # size in all specimens; a kernel's code does not depend on it


def _attention(rows, heads, kv_heads, head, dtype, prefix=8192, **special):
    def launch(gpu: Gpu) -> None:
        query = torch.empty(1, rows, heads, head, dtype=dtype).transpose(1, 2)
        cache = torch.empty(1, kv_heads, 16, head, dtype=dtype)
        visible = torch.ones(rows, rows, dtype=torch.bool).tril()
        mask = AncestorBits.of(visible, torch.arange(rows), prefix)
        cut = plan(rows, heads // kv_heads, kv_heads, head, cache.element_size(), prefix, gpu)
        tree_attention_triton(query, cache, cache, mask, cut=cut, **special)

    return launch


def _verify(rule):
    def launch(gpu: Gpu) -> None:
        whole = torch.zeros(3, dtype=torch.int32)
        tree = FlatTree(whole[:1], whole[:2], whole[:1], whole, whole[:2], whole[:2],
                        torch.empty(1, VOCABULARY), False)  # fmt: skip
        rows = torch.empty(2, VOCABULARY)
        coins = torch.empty(1, dtype=torch.float64)
        verify_tree_triton(rule, rows, tree, coins, rows)

    return launch


def _commit(dtype):
    def launch(gpu: Gpu) -> None:
        zero = torch.zeros(1, dtype=torch.int32)
        buffers = [torch.empty(1, 8, 32, 128, dtype=dtype)]
        kv_commit_triton(buffers, zero, torch.zeros(1, 16, dtype=torch.int32), zero)

    return launch


def _truncation(gpu: Gpu) -> None:
    truncated_triton(torch.empty(4, VOCABULARY, dtype=BF16), Sampling(0.8, 50, 0.9))


SPECIMENS: dict[str, Callable[[Gpu], None]] = {
    "llama-8b, 1 row": _attention(1, 32, 8, 128, BF16),
    "llama-8b, 16 rows": _attention(16, 32, 8, 128, BF16),
    "llama-8b, 64 rows": _attention(64, 32, 8, 128, BF16),
    "llama-8b, 16 rows, fp32": _attention(16, 32, 8, 128, FP32),
    "gemma2, 16 rows, window, cap": _attention(
        16, 8, 4, 256, FP16, window=4096, softcap=50.0
    ),
    "gpt-oss, 16 rows, window, sinks": _attention(
        16, 64, 8, 64, BF16, window=128, sinks=torch.empty(64, dtype=BF16)
    ),
    "greedy": _verify("greedy"),
    "rejection": _verify("rejection"),
    "sampler-match": _verify("sampler_match"),
    "commit, 16 bits": _commit(BF16),
    "commit, 32 bits": _commit(FP32),
    "truncation": _truncation,
    "noise": lambda gpu: noise_rows_triton(3, 77, 2, VOCABULARY, torch.device("cpu")),
}  # fmt: skip

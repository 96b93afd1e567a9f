"""What a step of a large model costs: random bf16 weights, a long prefix, trees of many sizes."""

import gc

import torch

from engine.bench_gpu import costs
from engine.bench_gpu.costs import Ceilings, Shape
from engine.bench_gpu.report import against_floor
from engine.bench_gpu.timing import host_milliseconds, milliseconds
from engine.bench_gpu.trees import binary_tree

NODES = (8, 16, 32, 64, 128)
PREFIX = 2048


def step_times(shape: Shape, found: Ceilings) -> list[dict]:
    """One row for the 1-token step, then one a tree size; each with its ratio to the first."""
    model = random_model(shape)
    session = model.session(PREFIX + 2 * max(NODES) + 2)
    session.prefill(torch.randint(0, shape.vocabulary, (PREFIX,)).tolist())
    rows: list[dict] = []
    for nodes in (0, *NODES):
        row = _step(shape, session, nodes, found)
        row["times_one_token"] = row["ms"] / (rows[0]["ms"] if rows else row["ms"])
        rows.append(row)
    rows[0]["times_weights"] = rows[0]["ms"] / weights_milliseconds(shape, found)
    del session, model
    gc.collect()
    torch.cuda.empty_cache()
    return rows


def weights_milliseconds(shape: Shape, found: Ceilings) -> float:
    """The weights of a step at copy bandwidth."""
    return 1000 * shape.step_parameters * 2 / found.bandwidth


def random_model(shape: Shape):
    """A module of these sizes on the GPU behind the engine's own session."""
    from transformers import AutoModelForCausalLM, LlamaConfig, Qwen3Config

    from engine.language_model import LanguageModel

    config = (Qwen3Config if shape.name.startswith("Qwen3") else LlamaConfig)(
        vocab_size=shape.vocabulary,
        hidden_size=shape.width,
        intermediate_size=shape.inner,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.head,
        max_position_embeddings=131072,
        tie_word_embeddings=shape.tied,
        eos_token_id=None,
    )
    with torch.device("cuda"):
        module = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    return LanguageModel(module, None, shape.name)


def _step(shape: Shape, session, nodes: int, found: Ceilings) -> dict:
    """Feed the root and a tree, and keep a path of it that is put back afterwards.

    ms: GPU time of many steps enqueued one behind the other (launch gaps included, where the
    host is slower than the GPU). host_ms: until the call returns; alone_ms: one step from an
    idle GPU until its logits are there.
    """
    tree = binary_tree(nodes)
    tokens = [1, *tree.tokens]
    parents = [-1] + [parent + 1 for parent in tree.parents]
    begin = session.length

    def step():
        session.feed(tokens, parents)
        session.commit([])

    for _ in range(3):
        step()
    measured = milliseconds(step, 12)
    host, alone = host_milliseconds(step, 8)
    if session.length != begin:
        raise RuntimeError("the session moved")
    cost = costs.step(shape, nodes + 1, begin)
    name = f"{shape.name}, 1 token" if nodes == 0 else f"{shape.name}, {nodes} nodes"
    return against_floor(name, measured, cost, found, host_ms=host, alone_ms=alone)

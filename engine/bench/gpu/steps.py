"""Measures the time of a step of a large model, with random bf16 weights, a long prefix and trees of many sizes."""

import gc
import statistics
import time
from collections.abc import Iterator
from itertools import islice

import torch
from torch import Tensor

from engine.bench.gpu import costs
from engine.bench.gpu.costs import Ceilings, Shape
from engine.bench.gpu.parts import against_floor
from engine.bench.gpu.timing import here, milliseconds, timed
from engine.core.decode import decode
from engine.core.drafter import Drafter
from engine.core.sampling import Sampling
from engine.core.seen import Draft
from engine.core.text import TextRequest
from engine.core.tree import ROOT, DraftTree
from engine.fast.gpu.judge import DeviceJudge
from engine.fast.gpu.question import JudgingKey, Question, QuestionedDraft
from engine.fast.gpu.static_joint import JointSessions
from engine.fast.kernels.flat_tree import Places
from engine.rules import verifier

NODES = (8, 16, 32, 64, 128)
TEXTS = 4  # texts that share one pass
PREFIX = 2048
WARM_UP, STEPS = 5, 30  # steps of the decoding loop before, and during, the host's measurement


def step_times(
    shape: Shape, found: Ceilings, nodes: tuple[int, ...] = NODES, prefix: int = PREFIX
) -> Iterator[dict]:
    """Yield one row for each measurement, as soon as it is made.

    The rows are: a step of one token; a step of each tree size, with its ratio to the first row; a tree that is judged
    within its pass; the host's share of a whole step of the decoding loop; and one pass over several texts. found: the
    machine's measured memory bandwidth and matrix rate. prefix: tokens in the KV cache before each step.
    """
    model = random_model(shape)
    prompt = torch.randint(0, shape.vocabulary, (prefix,)).tolist()
    session = model.session(prefix + 2 * max(nodes) + 2)
    try:
        session.prefill(prompt)
        yield from _steps(shape, found, nodes, model, session, prompt)
    finally:
        del session, model
        gc.collect()
        if here().type == "cuda":
            torch.cuda.empty_cache()


def _steps(shape: Shape, found: Ceilings, nodes, model, session, prompt) -> Iterator[dict]:
    one_token = _step(shape, session, 0, found)

    def compared(row: dict) -> dict:
        return row | {"times_one_token": row["ms"] / one_token["ms"]}

    captures = model.buffer_sets.captures and model.buffer_sets.usable
    share = one_token["ms"] / weights_milliseconds(shape, found)
    yield compared(one_token | {"times_weights": share, "captured": captures})
    for size in nodes:
        yield compared(_step(shape, session, size, found))
    yield compared(_judged(shape, session, nodes[0]))
    yield host_share(shape, model, prompt, nodes[0])
    yield compared(_texts_at_once(shape, session, nodes[0]))


def weights_milliseconds(shape: Shape, found: Ceilings) -> float:
    """The milliseconds that reading the weights of one step takes at copy bandwidth, for 2 bytes per weight."""
    return 1000 * shape.step_parameters * 2 / found.bandwidth


def random_model(shape: Shape):
    """A language model with these sizes and random bf16 weights, on the engine's static buffers."""
    from transformers import AutoModelForCausalLM, LlamaConfig, Qwen3Config

    from engine.fast.gpu.static_model import StaticModel

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
        bos_token_id=None,
        eos_token_id=None,
    )
    with here():
        module = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    return StaticModel(module, None, shape.name)


def _step(shape: Shape, session, nodes: int, found: Ceilings) -> dict:
    """One row: the time of a pass over the root and a tree. All rows are dropped after the pass.

    ``ms`` is GPU time from the copy of the inputs to the logits. Raises RuntimeError if the length of the session has
    changed after the measurement.
    """
    tree = binary_tree(nodes)
    tokens = [1, *tree.tokens]
    parents = [-1] + [parent + 1 for parent in tree.parents]
    begin = session.length

    def step():
        session.feed(tokens, parents)
        session.commit([])

    measured = milliseconds(step, 20)
    if session.length != begin:
        raise RuntimeError("the session moved")
    cost = costs.step(shape, nodes + 1, begin)
    name = f"{shape.name}, 1 token" if nodes == 0 else f"{shape.name}, {nodes} nodes"
    return against_floor(name, measured, cost, found)


def _judged(shape: Shape, session, nodes: int) -> dict:
    """One row: the time of a pass over the root and a tree that also judges the tree and moves the accepted rows in the
    cache. The session drops these rows afterwards."""
    tree = binary_tree(nodes)
    key = JudgingKey("greedy", Sampling(), frozenset({"one_hot"}))
    question = Question(key, Places.of(tree), [], None)
    draft = QuestionedDraft(1, tree, session.length + 1, question=question)

    def step():
        session.look(draft)
        session.commit([])

    return {"name": f"{shape.name}, {nodes} nodes, judged", "ms": milliseconds(step, 20)}


def _texts_at_once(shape: Shape, session, nodes: int) -> dict:
    """One row: the time of one pass over TEXTS copies of the session, each with a root and a tree."""
    tree = binary_tree(nodes)
    joint = JointSessions(session.model, session.length + 2 * nodes, TEXTS, ())
    for text_session in joint.sessions:
        text_session.take_over(session, session.length)

    def step():
        joint.look_at(dict.fromkeys(range(TEXTS), Draft(1, tree, session.length + 1)))
        for text_session in joint.sessions:
            text_session.commit([])

    return {"name": f"{shape.name}, {TEXTS} texts, {nodes} nodes", "ms": milliseconds(step, 20)}


class FixedTree(Drafter):
    """Drafts the same tree in every step. A target with random weights accepts almost none of its nodes."""

    key, family, summary = "fixed", "tree", ""
    draw_kinds = ("one_hot",)

    def __init__(self, nodes: int) -> None:
        super().__init__({})
        self._tree = binary_tree(nodes)

    def propose(self, context, max_depth):
        return self._tree


def host_share(shape: Shape, model, prompt: list[int], nodes: int) -> dict:
    """One row: the time of a whole step of the decoding loop (draft, pass, verdict, commit), and the host's share of
    it.

    The host's time is the time in which the host neither launches a graph nor waits for the verdict. Both times are
    medians over STEPS steps.
    """
    # enough tokens for every step, even if each keeps its whole tree
    tokens = (WARM_UP + STEPS + 1) * (nodes + 1)
    request = TextRequest(FixedTree(nodes), verifier("greedy"), Sampling(), prompt, tokens)
    steps = decode(model, request, recorded=False)
    for _ in islice(steps, WARM_UP):
        pass
    whole, host = [], []
    with (
        timed(torch.cuda.CUDAGraph, "replay") as launching,
        timed(DeviceJudge, "arrived") as waiting,
    ):
        for _ in range(STEPS):
            launching.clear()
            waiting.clear()
            began = time.perf_counter()
            next(steps)
            whole.append(time.perf_counter() - began)
            host.append(whole[-1] - sum(launching) - sum(waiting))
    steps.close()
    step, of_host = statistics.median(whole), statistics.median(host)
    return {
        "name": f"{shape.name}, host, {nodes} nodes",
        "step_ms": 1000 * step,
        "host_ms": 1000 * of_host,
        "host_share": of_host / step,
    }


def binary_tree(nodes: int, q: Tensor | None = None) -> DraftTree:
    """A tree with two children per node, filled level by level, in which all tokens differ. q: the distribution that
    the tree names as the law of its draws; None for one-hot tokens, which have no law."""
    tree = DraftTree()
    kind = "one_hot" if q is None else "without_replacement"
    for node in range(nodes):
        parent = ROOT if node < 2 else node // 2 - 1
        tree.draw(parent, 10 + node, kind, q, "bench")
    return tree

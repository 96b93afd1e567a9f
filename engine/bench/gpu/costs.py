"""Computes the least number of bytes and operations that a computation needs, and the least time on a given GPU."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Cost:
    """The least cost of a computation. bytes: each input read once and each output written once. operations:
    floating-point operations."""

    bytes: float
    operations: float = 0.0


@dataclass(frozen=True)
class Ceilings:
    """Rates that were measured on the machine. bandwidth: bytes per second of a large copy, read plus written. rate:
    operations per second of a large bf16 matrix product."""

    bandwidth: float
    rate: float

    def floor(self, cost: Cost) -> float:
        """The least time, in milliseconds, in which the GPU can do this work."""
        return 1000 * max(cost.bytes / self.bandwidth, cost.operations / self.rate)

    def bound(self, cost: Cost) -> str:
        """What limits the least time of this work: "memory" or "matrix"."""
        memory = cost.bytes / self.bandwidth >= cost.operations / self.rate
        return "memory" if memory else "matrix"


@dataclass(frozen=True)
class Shape:
    """The sizes of a decoder. width: hidden size. head: dimensions of an attention head. inner: units of the MLP. tied:
    whether embedding and output head share their weights, vocabulary x width."""

    name: str
    layers: int
    width: int
    heads: int
    kv_heads: int
    head: int
    inner: int
    vocabulary: int
    tied: bool

    @property
    def step_parameters(self) -> int:
        """The number of weights that every step reads: all except the unused rows of the embedding."""
        attention = self.width * self.head * (2 * self.heads + 2 * self.kv_heads)
        mlp = 3 * self.width * self.inner
        return self.layers * (attention + mlp) + self.vocabulary * self.width


LLAMA_8B = Shape("Llama-8B-shaped", 32, 4096, 32, 8, 128, 14336, 128256, False)
QWEN3_4B = Shape("Qwen3-4B-shaped", 36, 2560, 32, 8, 128, 9728, 151936, True)


def attention(shape: Shape, rows: int, prefix: int, element: int = 2) -> Cost:
    """The cost of tree attention in one layer, including the tree's own columns. element: bytes of a number."""
    columns = prefix + rows
    keys_values = 2 * shape.kv_heads * columns * shape.head * element
    queries_outputs = 2 * shape.heads * rows * shape.head * element
    return Cost(keys_values + queries_outputs, 4 * shape.heads * rows * columns * shape.head)


def step(shape: Shape, rows: int, prefix: int, element: int = 2) -> Cost:
    """The cost of one pass of the model over ``rows`` rows, which reads all weights once and the caches of all layers
    once."""
    inside = attention(shape, rows, prefix, element)
    logits = rows * shape.vocabulary * element
    return Cost(
        shape.step_parameters * element + shape.layers * inside.bytes + logits,
        2 * rows * shape.step_parameters + shape.layers * inside.operations,
    )


def commit(buffers: int, heads: int, size: int, moved: int, element: int = 2) -> Cost:
    """The cost of moving accepted rows in the KV cache. buffers: two per layer. heads: KV heads. size: dimensions of a
    head. moved: rows that move to another column."""
    return Cost(2 * buffers * heads * size * moved * element)


def verify(rule: str, rows: int, vocabulary: int, with_q: int = 0) -> Cost:
    """The cost of judging a tree. rows: the number of the target's distributions, after the root and after each node.
    with_q: the number of draft distributions that must be read."""
    noise = 0 if rule == "greedy" else rows
    return Cost(4 * vocabulary * (rows + noise + with_q))

"""The figure of the method's card: the bytes that a pass reads, weights against keys and values, and the gain of
drafting on a part.

It is computed from sizes alone. Bytes bound the gain from above: a check of several rows also computes more, which
matters on a CPU, and on a GPU with many texts.
"""

from dataclasses import dataclass

from engine.core.exhibits import Curve, Exhibit, Series, Table

SHARE = 1 / 8  # share of the keys and values that a draft pass reads
KEPT = 0.95  # share of the drafted tokens that are kept
LONGEST = 16  # most tokens of a draft
CONTEXTS = (128, 1024, 8192)
TEXTS = (1, 16, 64)


@dataclass(frozen=True)
class Sizes:
    """The sizes of a model. weights: their bytes. column: the bytes of the keys and values of one token."""

    name: str
    weights: float
    column: int

    def draft(self, tokens: int, texts: int) -> float:
        """Return the bytes of a draft pass as a share of those of a whole pass, over ``texts`` texts of ``tokens``
        tokens each."""
        cache = texts * tokens * self.column
        return (self.weights + SHARE * cache) / (self.weights + cache)

    def gain(self, tokens: int, texts: int) -> float:
        """Return how many times as fast as plain decoding the best draft length is, by bytes; 1 if it is best to draft
        nothing."""
        cost = self.draft(tokens, texts)
        return max(
            (1 - KEPT ** (length + 1)) / (1 - KEPT) / (1 + length * cost)
            for length in range(LONGEST + 1)
        )


def column(layers: int, heads: int, width: int, number: int) -> int:
    """Return the bytes of one token's keys and values. width: the size of a head. number: the bytes of one number."""
    return 2 * layers * heads * width * number


SMALL = Sizes("SmolLM2, 135 M, fp32", 134.5e6 * 4, column(30, 3, 64, 4))
LARGE = Sizes("Llama 3.1, 8 B, bf16", 8.03e9 * 2, column(32, 8, 128, 2))


def measured() -> tuple[Sizes, ...]:
    return SMALL, LARGE


def exhibits(models: tuple[Sizes, ...]) -> list[Exhibit]:
    rows = [
        [
            model.name,
            texts,
            tokens,
            round(model.weights / 1e6),
            round(texts * tokens * model.column / 1e6),
            round(model.draft(tokens, texts), 2),
            round(model.gain(tokens, texts), 2),
        ]
        for model in models
        for texts in (TEXTS[0], TEXTS[-1])
        for tokens in CONTEXTS
    ]
    bill = Table(
        "What a pass reads, in MB",
        ["model", "texts", "tokens", "weights", "keys and values", "draft ÷ pass", "gain"],
        rows,
        note=f"From sizes alone. The draft reads an eighth of the keys and values, and {KEPT:.0%} of it is kept.",
    )
    x = list(range(0, CONTEXTS[-1] + 1, 512))
    curves = [
        Curve(
            f"The most that can be gained: {model.name}",
            x,
            [Series(_texts(texts), [model.gain(tokens, texts) for tokens in x]) for texts in TEXTS],
            x_label="tokens of each text",
            y_label="times as fast",
        )
        for model in models
    ]
    return [bill, *curves]


def _texts(count: int) -> str:
    return "one text" if count == 1 else f"{count} texts at once"

"""The bytes that a pass of a model loads, for weights and for keys and values, and how much a draft that uses a part of
the keys and values can gain. The method's card on the page shows these numbers.

They are computed from sizes alone, and bound the gain from above. A check of several tokens also needs more arithmetic
than a pass for one token, which matters on a CPU, and on a GPU with many texts.
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
        """Return the bytes of a draft pass as a share of the bytes of a pass that uses all keys and values. Both passes
        are over ``texts`` texts of ``tokens`` tokens each."""
        cache = texts * tokens * self.column
        return (self.weights + SHARE * cache) / (self.weights + cache)

    def gain(self, tokens: int, texts: int) -> float:
        """Return the speed, relative to plain decoding, with the draft length that is fastest if time is proportional
        to bytes; 1 if it is best to draft nothing."""
        cost = self.draft(tokens, texts)
        return max(
            (1 - KEPT ** (length + 1)) / (1 - KEPT) / (1 + length * cost)
            for length in range(LONGEST + 1)
        )


def column(layers: int, heads: int, width: int, number: int) -> int:
    """Return the bytes of one token's keys and values. heads: key-value heads. width: the size of a head. number: the
    bytes of one number of the cache."""
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

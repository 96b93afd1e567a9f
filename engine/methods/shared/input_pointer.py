"""A pointer through an input that the output follows (Ge et al., Lossless Acceleration for Seq2seq Generation with
Aggressive Decoding, 2022)."""

from collections.abc import Sequence

from engine.core.exhibits import Gauge, Token, Words

SHOWN = 6  # tokens on each side of the pointer


class InputPointer:
    """The position in the input from which the output is expected to copy.

    place: the index of the input token that should come next. It is None after a bifurcation, until a suffix of the
    output occurs exactly once in the input. suffix: the suffix of the output by which the pointer was last set; empty
    as long as the output copies from the beginning of the input. bifurcations: how often the output's next token
    differed from the input token at the pointer.
    """

    def __init__(self, tokens: Sequence[int]) -> None:
        self.tokens = list(tokens)
        self.place: int | None = 0
        self.suffix: list[int] = []
        self.bifurcations = 0
        self._output: list[int] = []
        self._behind: dict[int, list[int]] = {}
        for place, token in enumerate(self.tokens, start=1):
            self._behind.setdefault(token, []).append(place)

    def follow(self, token: int) -> None:
        """Append ``token`` to the output, and move the pointer on; if the token differs from the input token, set the
        pointer anew."""
        self._output.append(token)
        expected = self.rest(1)
        if expected == [token]:
            self.place += 1
            return
        self.bifurcations += len(expected)
        self._align()

    def rest(self, most: int) -> list[int]:
        """Return up to ``most`` tokens of the input, from the pointer on; an empty list if the pointer is not set."""
        return [] if self.place is None else self.tokens[self.place : self.place + most]

    def _align(self) -> None:
        """Find the shortest suffix of the output that occurs exactly once in the input, and set the pointer to the
        token after this occurrence. If no suffix occurs exactly once, unset the pointer."""
        self.place, size = None, 1
        places = self._behind.get(self._output[-1], [])
        while len(places) > 1 and size < len(self._output):
            size += 1
            token = self._output[-size]
            places = [p for p in places if p >= size and self.tokens[p - size] == token]
        if len(places) == 1:
            (self.place,), self.suffix = places, self._output[-size:]

    def exhibits(self) -> list[Words | Gauge]:
        title = "Place in the input"
        note = f"Bifurcations so far: {self.bifurcations}."
        return [
            Words("Pointer", [self._where(), self._why()]),
            Gauge(title, self.place, maximum=len(self.tokens), unit="tokens", note=note),
        ]

    def _where(self) -> str | list[str | Token]:
        if self.place is None:
            return "There is no pointer: the target writes alone."
        before = self.tokens[max(0, self.place - SHOWN) : self.place]
        if not self.rest(1):
            return ["The input ends here: ", *map(Token, before)]
        return ["… ", *map(Token, before), " ▸ ", *map(Token, self.rest(SHOWN)), " …"]

    def _why(self) -> str | list[str | Token]:
        if self.place is None:
            last = Token(self._output[-1])
            times = len(self._behind.get(last.id, []))
            if not times:
                return ["The output's last token ", last, " does not stand in the input."]
            return [
                "No suffix of the output that ends in ",
                last,
                " stands exactly once in the input.",
            ]
        if not self.suffix:
            return "Copying began at the beginning of the input."
        return [
            "Aligned by ",
            *map(Token, self.suffix),
            ", which stands exactly once in the input.",
        ]

"""The draft model reads a short, retrieved prompt; the target reads the whole prompt.

RAPID (Chen et al., Long-Context Inference with Retrieval-Augmented Speculative Decoding, ICML 2025): with a long prompt
a draft model is hardly faster than the target, because both read the prompt's keys and values at every token. Here the
draft model reads only the end of the prompt and the pieces of the prompt that are related to its end. The target checks
the draft with the whole prompt, so under any exact rule the text is the target's own. The lossy rule that moves p
towards q (the transfer) is ``engine.methods.rapid.rule``.

The paper retrieves with an embedding model and BM25; here only BM25 over token ids is used
(``engine.methods.rapid.retrieved_prompt``). So even a draft model whose context is too short for the whole prompt can
draft.
"""

from dataclasses import replace

from engine.core.drafter import Drafter
from engine.core.exhibits import Gauge, Token, Words
from engine.core.options import whole
from engine.methods.rapid.retrieved_prompt import ShortPrompt, shortened
from engine.methods.shared.draft_chain import DraftChain

SHOWN = 6  # pieces that the exhibit shows
WORDS = 10  # tokens shown of each piece


class RapidDrafter(Drafter):
    key = "rapid"
    title = "Retrieved context, RAPID"
    family, shape = "retrieval", "chain"
    summary = "A draft model reads only the pieces of a long prompt that matter for its end."
    draw_kinds = DraftChain.draw_kinds
    needs = DraftChain.needs
    options = (
        whole("length", 0, 0, 32).meaning(
            "Most tokens drafted in a step (0: the fastest size for this machine, measured)."
        ),
        whole("retrieved", 128, 0, 16_384, "Retrieved tokens").meaning(
            "Most tokens of the prompt that are retrieved for the draft model."
        ),
        whole("ending", 64, 1, 4096, "End of the prompt").meaning(
            "Tokens at the prompt's end that the draft model always reads, and by which the rest is searched."
        ),
        whole("piece", 32, 4, 1024, "Piece length", advanced=True).meaning("Tokens of a piece."),
        *(option for option in DraftChain.options if option.name == "stop_below"),
    )
    size_option, usual_size = "length", DraftChain.usual_size
    trial = {"length": 2, "retrieved": 2, "ending": 2, "piece": 4}

    def __init__(self, settings, own: DraftChain) -> None:
        """own: the drafter that continues the short prompt with the draft model."""
        super().__init__(settings)
        self._own = own

    @classmethod
    def build(cls, settings, models):
        sizes = {name: settings[name] for name in ("length", "stop_below")}
        return cls(settings, DraftChain.build(sizes, models))

    def begin(self, start):
        super().begin(start)
        chosen = (self.settings[name] for name in ("ending", "piece", "retrieved"))
        self._short = shortened(start.prompt, *chosen)
        self._length = len(start.prompt)
        self.max_context = self._own.max_context + self._length - len(self._short.tokens)
        self._own.begin(replace(start, prompt=self._short.tokens))
        self._told = exhibits(self._short, start.prompt)

    def propose(self, context, max_depth):
        tree = self._own.propose([*self._short.tokens, *context[self._length :]], max_depth)
        tree.exhibits += self._told
        return tree

    def observe(self, kept):
        self._own.observe(kept)

    def passes(self):
        return self._own.passes()


def exhibits(short: ShortPrompt, prompt) -> list[Gauge | Words]:
    """Show how much of the prompt the draft model reads, and how its pieces were chosen."""
    title = "How much of the prompt the draft model reads"
    note = (
        "The target reads all of it."
        if short.pieces
        else "The prompt is so short that the draft model, too, reads all of it."
    )
    read = Gauge(title, len(short.tokens), maximum=len(prompt), unit="tokens", note=note)
    kept = sum(piece.kept for piece in short.pieces)
    best = sorted(short.pieces, key=lambda piece: (not piece.kept, -piece.score))[:SHOWN]
    if not best:
        return [read]
    share = f"{kept} of {len(short.pieces)} pieces are read: those that score highest"
    lines: list[str | list[str | Token]] = [f"{share} by BM25 against the prompt's end."]
    for piece in best:
        outcome = "read" if piece.kept else "left out"
        begins = [Token(token) for token in prompt[piece.start : piece.end][:WORDS]]
        lines.append(
            [f"Score {piece.score:.1f}, {outcome}, from token {piece.start}: ", *begins, " …"]
        )
    return [read, Words("Pieces of the prompt", lines)]

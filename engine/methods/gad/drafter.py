"""Draft a block with a model that fills all of it at once, and keep the tokens that the target would write.

Generalised Aggressive Decoding (Ge et al., Lossless Acceleration for Seq2seq Generation with Aggressive Decoding, 2022;
Xia et al., Speculative Decoding: Exploiting Speculative Execution for Accelerating Seq2seq Generation, 2022): where the
output does not repeat the input, a non-autoregressive model writes the draft instead. It fills a block of masks in one
pass, and the target checks the block. From the first token on that differs from the target's (a bifurcation), the block
is dropped, and a new block is filled in its place.

The model here is the denoiser that reads the target's states; the paper's is a separate encoder and decoder. The lossy
rule of the paper's GAD++ is ``engine.methods.gad.rule``. Beyond the paper, ``realign`` uses the dropped rest of a block
once more: where the end of the output occurs exactly once in the dropped block, the tokens after it become a second
branch. That helps where the block repeats a word and the target does not, which is rare.
"""

from collections.abc import Sequence

from engine.core.exhibits import Token, Words
from engine.core.options import switch, whole
from engine.core.sampling import likeliest
from engine.core.tree import ROOT, DraftTree
from engine.methods.shared.block_drafter import DiffusionDrafter
from engine.methods.shared.input_pointer import InputPointer


class GeneralisedAggressiveDrafter(DiffusionDrafter):
    key = "gad"
    title = "Aggressive decoding, generalised"
    summary = "A model fills a whole block at once; after a difference it fills a new block."
    draw_kinds = ("one_hot",)
    options = (
        whole("length", 0, 0, 31).meaning(
            "Tokens of a block (0: the fastest size for this machine, measured)."
        ),
        switch("realign", False, "Use the rest of the last block").meaning(
            "Also draft the rest of the last block where the end of the text occurs exactly once in it."
        ),
    )
    size_option, usual_size = "length", 7
    trial = {"length": 2}

    def begin(self, start):
        super().begin(start)
        self._block: list[int] = []
        self._since: list[int] = []

    def propose(self, context, max_depth):
        tree = DraftTree()
        marginals = self._marginals(context, max_depth).cpu()
        block, parent = likeliest(marginals), ROOT
        for place, token in enumerate(block):
            source = f"block {place + 1}"
            parent = tree.draw(parent, token, law=marginals[place], source=source)
        rest = self._rest()[:max_depth] if self.settings["realign"] else []
        tree.chain(rest, "rest of the last block")
        tree.exhibits += self._told(rest)
        self._block = block
        return tree

    def observe(self, kept):
        super().observe(kept)
        self._since = kept.tokens

    def _rest(self) -> list[int]:
        """Return the rest of the last block after the place where the end of the output occurs in this block. Empty if
        the end of the output does not occur there, or occurs more than once."""
        pointer = InputPointer(self._block)
        for token in self._since:
            pointer.follow(token)
        return pointer.rest(len(self._block)) if pointer.bifurcations and pointer.suffix else []

    def _told(self, rest: Sequence[int]) -> list[Words]:
        if not self._since:
            return []
        before = [a == b for a, b in zip(self._block, self._since, strict=False)]
        same = before.index(False) if False in before else len(before)
        line: list[str | Token] = [
            f"{same} of the {len(self._block)} tokens of the last block were kept"
        ]
        if same < min(len(self._block), len(self._since)):
            line += ["; then ", Token(self._since[same]), " came instead of "]
            line += [Token(self._block[same])]
        lines = [[*line, "."]]
        if rest:
            lines.append(["The rest of that block is drafted from here on: ", *map(Token, rest)])
        return [Words("Bifurcation", lines)]

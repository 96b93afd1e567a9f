"""Copy the input; where the output departs from it, find the place in the input from which to go on copying.

Input-guided Aggressive Decoding (Ge et al., Lossless Acceleration for Seq2seq Generation with Aggressive Decoding,
2022): where the output mostly repeats the input, as when a sentence is corrected, the input itself is the draft. A
pointer walks through the input while output and input agree. Where they part (a bifurcation), the target writes alone
until the end of the output occurs exactly once in the input; copying goes on from there.
"""

from engine.core.drafter import Drafter
from engine.core.options import whole
from engine.core.tree import DraftTree
from engine.methods.shared.input_pointer import InputPointer


class AggressiveDrafter(Drafter):
    key = "aggressive"
    title = "Aggressive decoding"
    family = "retrieval"
    summary = "Copies the prompt from a pointer; where the output departs, finds its place again."
    draw_kinds = ("one_hot",)
    options = (
        whole("length", 16, 0, 512, "Length").meaning(
            "Most tokens copied in a step (0: all the rest of the input, as in the paper)."
        ),
        whole("skip", 0, 0, 100_000, "Instruction").meaning(
            "Tokens at the beginning of the prompt that are no input: the instruction."
        ),
    )
    trial = {"length": 2}

    def begin(self, start):
        super().begin(start)
        self._read = len(start.prompt)
        self._copy = InputPointer(start.prompt[self.settings["skip"] :])

    def propose(self, context, max_depth):
        for token in context[self._read :]:
            self._copy.follow(token)
        self._read = len(context)
        length = min(self.settings["length"] or max_depth, max_depth)
        tree = DraftTree()
        tree.chain(self._copy.rest(length), f"input {self._copy.place}")
        tree.exhibits += self._copy.exhibits()
        return tree

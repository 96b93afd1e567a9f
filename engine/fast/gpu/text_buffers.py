"""The passes of a language model on static buffers: over a tree, with or without a verdict, and along a chain."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from engine.core.sampling import Sampling
from engine.core.transfer import into
from engine.errors import UserError
from engine.fast.gpu.buffer_sets import BufferSet, BufferSets, Pass
from engine.fast.gpu.inputs import DeviceRows, Size, StepInputs
from engine.fast.gpu.question import JudgedSeen
from engine.fast.gpu.static_step import chain, step
from engine.fast.gpu.verdict import Arrival, JudgedInputs, judged
from engine.fast.kernels.bits import WORD
from engine.fast.kernels.lang import power_of_two


class TextBuffers(BufferSet):
    """The ``BufferSet`` of a language model.

    The key of a plain pass is (size, features), the key of a judged pass (laws, size, features), and the key of a chain
    (laws, tokens read, tokens drafted, vocabulary)."""

    def __init__(self, sets: BufferSets, capacity: int, sequences: int = 1) -> None:
        weight = sets.module.get_output_embeddings().weight
        refuse_tf32(weight.dtype, weight.device)
        super().__init__(sets, capacity, sequences)

    def feed(
        self, given: Sequence[DeviceRows], features: tuple[int, ...]
    ) -> list[tuple[Tensor, Tensor | None]] | None:
        """Read rows of every sequence in one pass. Returns for each sequence the logits [R, V] of its R rows, and their
        features [R, n*H] or None.

        Returns None if no size is large enough. For a single sequence it also returns None if its pass cannot be
        captured, because a plain pass through the module is then faster.
        """
        size = self._size(given)
        if size is None:
            return None
        key = (size, features)
        if self._given_up(key) and self.sequences == 1:
            return None
        if key not in self._passes:
            inputs = StepInputs(size, self._sets.device, self.sequences)
            function = partial(step, self._sets.module, inputs, self.cache, features)
            self._passes[key] = Pass(inputs, None, function)
        self._passes[key].inputs.load(*given)
        logits, states = self._run(key)
        return [
            (
                logits[index, : len(rows.tokens)].clone(),
                None if states is None else states[index, : len(rows.tokens)].clone(),
            )
            for index, rows in enumerate(given)
        ]

    def judge(
        self, given: Sequence[DeviceRows], features: tuple[int, ...]
    ) -> list[JudgedSeen] | None:
        """Read rows of every sequence in one pass that also judges each sequence's tree and moves the KV rows of
        accepted nodes to the columns after the committed ones.

        Returns None in the cases in which ``feed`` does, and also before the buffers exist and if a tree has too many
        draws.
        """
        size = self._size(given)
        if size is None or not self.cache.ready:
            return None
        laws = tuple(rows.question.key for rows in given)
        key = (laws, size, features)
        if self._given_up(key) and self.sequences == 1:
            return None
        if key not in self._passes:
            self._forget_laws_but(laws)
            vocabulary = self._sets.module.get_output_embeddings().weight.shape[0]
            inputs = JudgedInputs(size, self._sets.device, laws, vocabulary)
            function = partial(judged, self._sets.module, inputs, self.cache, features)
            self._passes[key] = Pass(inputs, None, function)
        inputs = self._passes[key].inputs
        if not inputs.fits(given):
            return None
        self.cache.locate()
        inputs.load(*given)
        logits, states, numbers = self._run(key)
        arrival = Arrival(numbers)
        return [
            JudgedSeen(
                logits[index, : len(rows.tokens)],
                None if states is None else states[index, : len(rows.tokens)].clone(),
                numbers=partial(arrival.of, index),
            )
            for index, rows in enumerate(given)
        ]

    def _size(self, given: Sequence[DeviceRows]) -> Size | None:
        """Make room for a pass over these rows, and return the pass's size; None if there is no such pass."""
        size = Size.of(max(len(rows.tokens) for rows in given), max(rows.behind for rows in given))
        if size is None or (not self._sets.usable and self.sequences == 1):
            return None
        self._make_room(max(rows.prefix for rows in given) + size.scratch)
        return size

    def write(
        self,
        tokens: Sequence[int],
        prefix: int,
        count: int,
        vocabulary: int,
        sampling: Sampling,
        drawn: Tensor | None,
    ) -> tuple[Tensor, Tensor | None]:
        """Read ``tokens``, then draft ``count`` tokens, with the arguments and results of ``StaticSession.write``.

        prefix: the number of committed columns. Afterwards the scratch rows are a chain of len(tokens) + count - 1
        rows.
        """
        first, rows = len(tokens), len(tokens) + count - 1
        words = power_of_two(-(-rows // WORD))
        self._make_room(prefix + WORD * words)
        sees = [(2 << row) - 1 for row in range(rows)]
        law = Sampling() if sampling.greedy else replace(sampling, seed=0)
        key = ((law,), first, count, vocabulary)
        if key not in self._passes:
            self._forget_laws_but((law,))
            sizes = [Size(first, words)] + [Size(1, words)] * (count - 1)
            passes = [StepInputs(size, self._sets.device) for size in sizes]
            for row, inputs in enumerate(passes[1:], start=first):
                inputs.load(DeviceRows([0], 0, range(row + 1), sees[row : row + 1]))
            held = torch.zeros(count, dtype=torch.float64, device=self._sets.device)
            function = partial(chain, self._sets.module, passes, self.cache, vocabulary, law, held)
            self._passes[key] = Pass(passes[0], held, function)
        chain_pass = self._passes[key]
        chain_pass.inputs.load(DeviceRows(tokens, prefix, range(first), sees[:first]))
        if drawn is not None:
            into(chain_pass.extra_input, drawn)
        ids, laws = self._run(key)
        return ids.clone(), None if laws is None else laws.clone()


def refuse_tf32(dtype: torch.dtype, device: torch.device) -> None:
    """Raise UserError if products of float32 matrices would be rounded to TF32 (10 bits), because the text of tree
    decoding would then differ from the text of plain decoding."""
    allowed = torch.backends.cuda.matmul.allow_tf32
    if dtype == torch.float32 and device.type == "cuda" and allowed:
        raise UserError(
            "float32 models need exact products: "
            "switch torch.backends.cuda.matmul.allow_tf32 off, or load the model in bfloat16."
        )

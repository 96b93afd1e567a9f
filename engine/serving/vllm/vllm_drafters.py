"""Drafters of this repository that run inside vLLM. The command line of vLLM names one by its class:

    --speculative-config '{"method": "custom_class", "model": "engine.serving.vllm.Suffix", "num_speculative_tokens": 8}'

vLLM makes one object of the class. After each step it calls ``propose``, which drafts a chain for every running
request. vLLM judges the drafted tokens as if each had been proposed with certainty (q one-hot), so the texts have the
same law as without drafts. If the method drafts a tree, its likeliest branch is used.

vLLM does not say which request is which. So each request is recognised by its tokens: they must equal the text that
one of the drafters has seen, plus the tokens of the last step. If no request has a drafter's text any more, the
request has ended or was preempted, and the drafter is closed. All requests share one memory, so a method may use for
one request what it learned from another.
"""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from engine.core.chance import Chance
from engine.core.drafter import Drafter, Kept, Start
from engine.core.memory import Memory
from engine.core.options import resolve
from engine.core.sampling import Sampling
from engine.core.tree import ROOT, DraftTree
from engine.methods.aded.drafter import AdaptiveDraftDrafter
from engine.methods.aggressive.drafter import AggressiveDrafter
from engine.methods.none.drafter import NoDrafter
from engine.methods.suffix.drafter import SuffixDrafter
from engine.methods.suffix_hybrid.drafter import SuffixHybridDrafter
from engine.methods.token_recycling.drafter import TokenRecyclingDrafter


class VllmDrafter:
    """The object that vLLM calls, for one method of this repository with its default options."""

    method: ClassVar[type[Drafter]]
    learns_from_logits: ClassVar[bool] = False

    def __init__(self, vllm_config) -> None:
        model = vllm_config.model_config
        self._length = vllm_config.speculative_config.num_speculative_tokens
        self._most = model.max_model_len
        target = SimpleNamespace(name=model.model, vocab_size=model.get_vocab_size())
        self._models = SimpleNamespace(target=target, folders={})
        self._memory = Memory()
        self._requests: dict[bytes, list[Request]] = {}  # by the tokens of the text so far
        self._logits: Tensor | None = None

    def load_model(self, target: torch.nn.Module) -> None:
        """Called by vLLM with the loaded target. If the method learns from logits, wrap the target so that the logits
        of each pass are stored."""
        if not self.learns_from_logits:
            return
        compute = target.compute_logits

        def heard(*given, **named) -> Tensor | None:
            self._logits = compute(*given, **named)
            return self._logits

        target.compute_logits = heard

    def propose(
        self,
        sampled_token_ids: Sequence[Sequence[int]],
        num_tokens_no_spec: np.ndarray,
        token_ids_cpu: np.ndarray,
        slot_mappings: object = None,
    ) -> list[list[int]]:
        """The drafted tokens for each of R requests. sampled_token_ids: for each request, the tokens that the last
        step added; empty as long as the target has not finished the pass over the prompt. num_tokens_no_spec: [R], the
        lengths of the texts. token_ids_cpu: [R, T], the tokens of the texts."""
        before, self._requests = self._requests, {}
        running: list[Request | None] = []
        for sampled, length, row in zip(
            sampled_token_ids, num_tokens_no_spec, token_ids_cpu, strict=False
        ):
            same = before.get(row[: length - len(sampled)].tobytes()) if sampled else None
            running.append(same.pop() if same else None)
        for gone in (request for requests in before.values() for request in requests):
            gone.drafter.close()
        logits = self._rows([0 if request is None else len(request.drafted) for request in running])
        drafts = []
        for place, sampled in enumerate(sampled_token_ids):
            text = token_ids_cpu[place, : num_tokens_no_spec[place]]
            room = min(self._length, self._most - len(text) - 1)
            if not sampled or room < 1:
                drafts.append([])
                continue
            request = running[place]
            if request is None:
                request = Request(self._drafter(), text.tolist(), len(sampled), self._memory)
            else:
                request.observe(list(sampled), logits[place])
            drafts.append(request.propose(room))
            self._requests.setdefault(text.tobytes(), []).append(request)
        return drafts

    def _drafter(self) -> Drafter:
        settings = resolve(self.method.key, self.method.options, {})
        return self.method.build(settings, self._models)

    def _rows(self, drafted: Sequence[int]) -> list[Tensor | None]:
        """For each request, the target's logits after the root and after each drafted token. drafted: how many tokens
        were drafted for each request. None for all requests if the stored logits have another number of rows, because
        vLLM has dropped drafted tokens or has computed other logits in the meantime."""
        logits, self._logits = self._logits, None
        counts = [count + 1 for count in drafted]
        if logits is None or len(logits) != sum(counts):
            return [None] * len(counts)
        return list(logits.float().cpu().split(counts))


class Request:
    """One request, with its drafter and its last draft."""

    def __init__(self, drafter: Drafter, text: list[int], new: int, memory: Memory) -> None:
        """new: how many tokens at the end of ``text`` were written after the prompt."""
        self.drafter, self._text = drafter, text
        self.drafted = DraftTree()
        prompt = tuple(text[: len(text) - new])
        drafter.begin(Start(prompt, Sampling(), Chance.of(0).drafting, memory=memory))

    def observe(self, sampled: list[int], logits: Tensor | None) -> None:
        """Tell the drafter how its last draft was judged. sampled: the accepted drafted tokens, and the final token of
        the step. logits: the target's, [drafted + 1, V], or None."""
        kept = len(sampled) - 1
        final = "bonus" if kept == len(self.drafted) else "recovered"
        root, position = self._text[-1], len(self._text)
        self._text += sampled
        self.drafter.observe(
            Kept(
                self.drafted,
                list(range(kept)),
                sampled,
                logits,
                root=root,
                position=position,
                final=final,
            )
        )

    def propose(self, length: int) -> list[int]:
        tree = self.drafter.propose(self._text, length)
        self.drafted = DraftTree()
        self.drafted.chain(likeliest_branch(tree)[:length], self.drafter.key)
        return self.drafted.tokens


def likeliest_branch(tree: DraftTree) -> list[int]:
    """The tokens of one branch of a tree. From the root on, it follows the child with the greatest q, or the first
    child if the children have no q."""
    branch, place = [], ROOT
    while children := tree.children(place):
        place = max(children, key=lambda node: tree.q[node] or 0.0)
        branch.append(tree.tokens[place])
    return branch


class Suffix(VllmDrafter):
    method = SuffixDrafter


class SuffixHybrid(VllmDrafter):
    """The suffix hybrid without its draft model. It drafts nothing if the copied tokens that it expects to be accepted
    are fewer than half of the longest draft."""

    method = SuffixHybridDrafter

    def _drafter(self) -> Drafter:
        settings = resolve(self.method.key, self.method.options, {"threshold": self._length / 2})
        return SuffixHybridDrafter(
            settings, SuffixHybridDrafter.copies(settings, self._models), NoDrafter({})
        )


class TokenRecycling(VllmDrafter):
    method = TokenRecyclingDrafter
    learns_from_logits = True


class Aded(VllmDrafter):
    method = AdaptiveDraftDrafter
    learns_from_logits = True


class Aggressive(VllmDrafter):
    method = AggressiveDrafter

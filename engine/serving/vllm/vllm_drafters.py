"""Drafters of this repository inside vLLM, named by their class:

    --speculative-config '{"method": "custom_class", "model": "engine.serving.vllm.Suffix", "num_speculative_tokens": 8}'

vLLM makes one object. After each step it requests a draft for every running request (``propose``), a chain, which it
judges as fixed guesses, so the texts are the same as without drafts. Of a tree, the likeliest branch is handed over.

Requests come without names. Each is recognised by its tokens before the step, which its drafter has seen. If a
drafter's text does not come again, the drafter is closed: its request has ended, or will begin anew. Whatever a method
learns from one request serves all.
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
    """The object that vLLM calls, for one method with its default options."""

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
        """Record the target's logits of each pass, if the method learns from them."""
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
        """Drafted tokens for each request. sampled_token_ids: the tokens that the step added to each request; empty
        while its prompt is being read. num_tokens_no_spec: [R], the lengths of the texts. token_ids_cpu: [R, T], their
        tokens."""
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
        """For each request, the target's logits after the root and each drafted token. None for all requests if the
        numbers of rows do not agree, because vLLM has dropped drafted tokens or computed other logits since."""
        logits, self._logits = self._logits, None
        counts = [count + 1 for count in drafted]
        if logits is None or len(logits) != sum(counts):
            return [None] * len(counts)
        return list(logits.float().cpu().split(counts))


class Request:
    """A request, its drafter, and its last draft."""

    def __init__(self, drafter: Drafter, text: list[int], new: int, memory: Memory) -> None:
        """new: the number of tokens at the end of the text that do not belong to the prompt."""
        self.drafter, self._text = drafter, text
        self.drafted = DraftTree()
        prompt = tuple(text[: len(text) - new])
        drafter.begin(Start(prompt, Sampling(), Chance.of(0).drafting, memory=memory))

    def observe(self, sampled: list[int], logits: Tensor | None) -> None:
        """Report a step to the drafter. sampled: the kept drafted tokens, and one more token. logits: [drafted + 1, V],
        or None."""
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
    """The tokens of a branch: at every node it follows the child with the greatest q, or the first child if none has a
    q."""
    branch, place = [], ROOT
    while children := tree.children(place):
        place = max(children, key=lambda node: tree.q[node] or 0.0)
        branch.append(tree.tokens[place])
    return branch


class Suffix(VllmDrafter):
    method = SuffixDrafter


class SuffixHybrid(VllmDrafter):
    """The suffix hybrid without its draft model. If fewer copied tokens are expected to be kept than half of the
    draft's length, nothing is drafted."""

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

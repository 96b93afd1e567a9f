"""Mean accepted tokens of a drafter, without an engine: greedy text is the same whatever drafts it, so the target
writes it once, the drafter is asked at every place of it, and the steps are walked afterwards."""

from __future__ import annotations

import torch
from torch import Tensor

from ..dflash_model import DFlashModel
from .diffusion import block_embeddings, features_of


def mean_accepted(matches: list[int]) -> float:
    """matches[t]: how many drafted tokens are right when the last committed token is t tokens into the text.
    New tokens / steps, the final token of each step included."""
    at = steps = 0
    while at < len(matches):
        at += matches[at] + 1
        steps += 1
    return len(matches) / max(1, steps)


def run_lengths(right: Tensor) -> Tensor:
    """bool [N, K] -> int [N]: how many hold before the first that does not."""
    return right.int().cumprod(dim=1).sum(dim=1)


@torch.inference_mode()
def greedy_text(target, prompt: list[int], new_tokens: int) -> list[int]:
    ids = torch.tensor([prompt])
    return target.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=new_tokens, do_sample=False
    )[0].tolist()


@torch.inference_mode()
def chain_matches(draft, text: list[int], start: int, length: int) -> list[int]:
    """A greedy chain of `length` from each place of text[start:]: right as long as the draft's argmax is the text."""
    tokens = torch.tensor(text)
    best = draft(input_ids=tokens[None], use_cache=False).logits[0, :-1].argmax(-1)
    right = torch.nn.functional.pad(best == tokens[1:], (0, length), value=False)
    return run_lengths(right.unfold(0, length, 1))[start - 1 : len(text) - 1].tolist()


@torch.inference_mode()
def block_matches(drafter: DFlashModel, target, text: list[int], start: int) -> list[int]:
    """The block drafted at each place of text[start:], all in one training forward."""
    config, tokens = drafter.config, torch.tensor([text])
    out = target(input_ids=tokens, use_cache=False, output_hidden_states=True)
    anchors = torch.arange(start - 1, len(text) - 1)[None]
    embedding = target.get_input_embeddings()
    blocks = block_embeddings(
        embedding, tokens.gather(1, anchors), config.block_size, config.mask_token_id
    )
    hidden = drafter(features_of(out.hidden_states, config.target_layer_ids), blocks, anchors)
    best = (hidden[0, :, 1:] @ embedding.weight.T).argmax(-1)  # [A, B-1]
    padded = torch.nn.functional.pad(tokens[0], (0, config.block_size), value=-1)
    truth = padded[anchors[0][:, None] + torch.arange(1, config.block_size)]
    return run_lengths(best == truth).tolist()

"""The cell of FLASH: a few weighted sums stand for the patches of a picture, and one pass gives the features of several
coming tokens.

Wang et al., FLASH: Latent-Aware Semi-Autoregressive Speculative Decoding for Multimodal Tasks (2025). A row of the text
is the pair of a feature and the token after it, as in EAGLE. In place of the P patches of a picture the cell reads C
rows: weighted sums of the target's features at the patches, z = softmax(A v) v, where A holds C learned questions.
These rows are the *latents*. One layer of attention runs over all rows. After it an MLP makes K features from each row
at once, and the target's head turns each feature into logits.

The paper has 64 questions for 576 patches. Here a film has 72 patches and a picture nine, so 64 questions would
compress nothing. A film gets eight questions, a ninth of its patches as in the paper, and a picture gets the first four
of them.

Letters in shapes: P patches, C questions, R rows, K features of a row, H hidden size.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import torch
from torch import Tensor, nn

from engine.methods.shared.attention_layer import Attend, Attention, Turn, rotary
from engine.parts.module_part import ModulePart, sizes_of

FEW = 9  # up to this many patches, only the first half of the questions is used


@dataclass(frozen=True)
class LatentSizes:
    """The sizes of the cell. latents: the number of learned questions, each of which makes one latent of the patches.
    features: how many features the MLP makes from a row. inner: units of the MLP, as a multiple of hidden_size."""

    hidden_size: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    latents: int = 8
    features: int = 5
    inner: int = 4
    rope_theta: float = 10000.0


class LatentCell(ModulePart):
    key, noun = "latent_cell", "latent drafter for pictures"

    def __init__(self, sizes: LatentSizes) -> None:
        super().__init__()
        self.sizes = sizes
        width, inner = sizes.hidden_size, sizes.inner * sizes.hidden_size
        self.questions = nn.Parameter(torch.randn(sizes.latents, width) * width**-0.5)
        self.fc = nn.Linear(2 * width, width, bias=False)
        self.norm, self.mlp_norm = nn.RMSNorm(width), nn.RMSNorm(width)
        heads = sizes.num_attention_heads, sizes.num_key_value_heads
        self.attention = Attention(width, *heads, sizes.head_dim)
        self.up = nn.Linear(width, inner, bias=False)
        self.down = nn.Linear(inner, sizes.features * width, bias=False)

    @classmethod
    def of_files(cls, config, tensors, target):
        sizes = sizes_of(LatentSizes, config)
        if sizes.num_attention_heads % sizes.num_key_value_heads or sizes.head_dim % 2:
            raise ValueError("its heads do not divide")
        if target is not None and sizes.hidden_size != target.hidden_size:
            raise ValueError("its states have another size")
        return cls(sizes)

    def fields(self):
        return {"model_type": self.key, **asdict(self.sizes)}

    @classmethod
    def tiny(cls, target, opener=None):
        cell = cls(LatentSizes(target.hidden_size, 2, 1, 8, latents=2, features=3, inner=2))
        cell.fc.weight.data[:, target.hidden_size :] += torch.eye(target.hidden_size)
        return cell.eval().requires_grad_(False)

    def shares(self, features: Tensor) -> Tensor:
        """Return [.., C, P]: the weight of each patch in each latent. features: [.., P, H], the target's features at
        the patches."""
        few = features.shape[-2] <= FEW
        questions = self.questions[: max(1, len(self.questions) // 2)] if few else self.questions
        return (questions.to(features.dtype) @ features.mT).softmax(-1)

    def latents(self, features: Tensor) -> Tensor:
        """Map the features of the patches [.., P, H] to the latents [.., C, H]."""
        return self.shares(features) @ features

    def pairs(self, features: Tensor, embedded: Tensor) -> Tensor:
        """Return rows [.., R, H] from features and the embeddings of the tokens after them."""
        return self.fc(torch.cat([embedded.to(features.dtype), features], -1))

    def turn(self, places: Tensor) -> Turn:
        """Return cos and sin of the rotary embedding. places: int64 [.., R], the positions of the rows, where the
        latents come first."""
        return rotary(places, self.sizes.head_dim, self.sizes.rope_theta, self.fc.weight.dtype)

    def forward(self, rows: Tensor, turn: Turn, attend: Attend) -> Tensor:
        """Map rows [.., R, H] to predictions [.., R, K, H] of the target's features, at the token of each row and at
        the K - 1 tokens after it."""
        rows = rows + self.attention(self.norm(rows), turn, attend)
        features = self.down(nn.functional.silu(self.up(self.mlp_norm(rows))))
        return rows[..., None, :] + features.unflatten(-1, (self.sizes.features, -1))


KIND = LatentCell.kind()
"""The kind of part whose cells attend to a few latents in place of all patches of a picture."""

"""Prompt tokens in training: the frozen target reads them behind positions of a text, and they learn to make it predict
there the tokens that it would predict after reading on.

Chen et al., "Hardware-Aware Parallel Prompt Decoding for Memory-Efficient Acceleration of LLM Inference" (2024):
distillation, the place i counting 0.8^i. The text itself is read once without gradients; only the prompt tokens' rows are
read with them.

Letters in shapes: S windows, T tokens of each, A places with prompt tokens behind them, K, E, H, V as in the part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.errors import UserError
from engine.options import Option
from engine.parts.prompt_tokens import MOST_ROWS, PromptTokens

from ..acceptance import run_lengths
from ..distill import divergence_loss
from ..student import Student

DECAY = 0.8


class PromptTokenStudent(Student):
    key = "ppd"
    summary = "the prompt tokens of `ppd` and `lud`, read by the frozen target"
    options = (
        Option("places", "int", 3, "Tokens predicted beyond the target's own.", 1, 16),
        Option(
            "members", "int", 1, "Vectors of each prompt token, whose logits are averaged.", 1, 16
        ),
        Option("asked", "int", 24, "Places of a window behind which they stand.", 1, 256),
    )
    adam_rate = 1e-2

    @property
    def feature_layers(self):
        return (self.config.num_hidden_layers,)

    def start(self):
        """Each is the mean embedding with a little noise, as large as a token's."""
        rows = self.settings["places"] * self.settings["members"]
        if rows > MOST_ROWS:
            raise UserError(
                f"Places times members may be at most {MOST_ROWS}, not {rows}: so many rows would stand in a pass."
            )
        made = PromptTokens(
            self.settings["places"], self.settings["members"], self.config.hidden_size
        )
        table = self.target.get_input_embeddings().weight.float()
        noise = torch.randn_like(made.embeddings) * table.std()
        made.embeddings.data.copy_(table.mean(0).to(noise.device) + 0.5 * noise)
        return made

    def logits(self, part: PromptTokens, tokens: Tensor, asked: Sequence[int]) -> Tensor:
        """tokens [S, T], places ``asked`` [A] -> [S, A, K, V]: row i of a place is about the token i + 2 behind it."""
        windows, length = tokens.shape
        with torch.no_grad():
            cache = self.target(input_ids=tokens, use_cache=True, logits_to_keep=1).past_key_values
        count, device = len(part), tokens.device
        places = torch.tensor(asked, device=device)
        steps = torch.arange(count, device=device) // part.members + 1
        rows = len(asked) * count
        sees = torch.zeros(rows, length + rows, dtype=torch.bool, device=device)
        before = torch.arange(length, device=device) <= places[:, None]
        sees[:, :length] = before.repeat_interleave(count, 0)
        within = torch.arange(count, device=device)
        member, place = within % part.members, within // part.members
        own = (member[:, None] == member) & (place[:, None] >= place)
        sees[:, length:] = torch.block_diag(*[own] * len(asked)).bool()
        mask = torch.zeros(sees.shape, dtype=self.target.dtype, device=device)
        mask.masked_fill_(~sees, torch.finfo(mask.dtype).min)
        found = self.target(
            inputs_embeds=part.rows.repeat(len(asked), 1)[None].expand(windows, -1, -1),
            attention_mask=mask.expand(windows, 1, -1, -1),
            position_ids=(places[:, None] + steps).flatten()[None].expand(windows, -1),
            past_key_values=cache,
            use_cache=True,
        ).logits
        return part.logits(found.unflatten(1, (len(asked), count)))

    def loss(self, part, lesson):
        last = (
            lesson.tokens.shape[1] - part.places - 1
        )  # a place must have its tokens in the window
        order = torch.randperm(last, generator=torch.Generator().manual_seed(lesson.index))
        asked = order[: self.settings["asked"]].sort().values.tolist()
        found = self.logits(part, lesson.tokens, asked)
        losses = []
        for place in range(part.places):
            later = [
                at + place + 1 for at in asked
            ]  # the row whose law is that of the token place + 2 behind
            keep = lesson.counted[:, [at + 1 for at in later]].float().flatten()
            teacher = lesson.logits[:, later].flatten(0, 1)
            losses.append(
                DECAY**place * divergence_loss(found[:, :, place].flatten(0, 1), teacher, keep)
            )
        return sum(losses) / part.places

    def accepted(self, part, lesson):
        """With chains of the likeliest tokens, predicted behind the token before the root, as after any step."""
        tokens = lesson.tokens
        length = tokens.shape[1]
        best = self.logits(part, tokens, list(range(length - 1))).argmax(-1)  # [S, T - 1, K]
        padded = F.pad(tokens, (0, part.places), value=-1)  # nothing is right beyond the end
        told = padded[:, 2:].unfold(1, part.places, 1)[:, : length - 1]  # [S, T - 1, K]
        right = (best == told).flatten(0, 1)
        return F.pad(run_lengths(right).view(len(tokens), -1), (1, 0))

    def save(self, part, folder: Path, about: Mapping):
        part.save(folder, about)


STUDENT = PromptTokenStudent

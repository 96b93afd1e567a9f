"""Trains prompt tokens: the frozen target runs over them at random positions of a text, and they learn to predict later
tokens.

Chen et al., "Hardware-Aware Parallel Prompt Decoding for Memory-Efficient Acceleration of LLM Inference" (2024); the
loss is that of all probe rows (``engine.training.students.probes``).

Letters in shapes: S windows, T tokens of a window, A positions after which prompt tokens are inserted; K, E, H, V as in
``engine.methods.shared.prompt_tokens_part``.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.core.options import whole
from engine.core.seen import MOST_PROBES
from engine.errors import UserError
from engine.methods.shared.prompt_tokens_part import PromptTokens
from engine.training.students.probes import ProbeStudent, added


class PromptTokenStudent(ProbeStudent):
    key = "ppd"
    summary = "the prompt tokens of `ppd` and `lud`, read by the frozen target"
    options = (
        whole("places", 3, 1, 16).meaning("Tokens predicted beyond the target's own."),
        whole("members", 1, 1, 16).meaning(
            "Vectors of each prompt token, whose logits are averaged."
        ),
        ProbeStudent.asked_option("they"),
    )
    adam_rate = 1e-2

    def start(self):
        """Return prompt tokens whose vectors start as the mean embedding plus a little noise."""
        rows = self.settings["places"] * self.settings["members"]
        if rows > MOST_PROBES:
            raise UserError(
                f"Places times members may be at most {MOST_PROBES}, not {rows}: so many rows would stand in a pass."
            )
        prompt_tokens = PromptTokens(
            self.settings["places"], self.settings["members"], self.config.hidden_size
        )
        table = self.target.get_input_embeddings().weight.float().cpu()
        noise = torch.randn_like(prompt_tokens.embeddings) * table.std()
        prompt_tokens.embeddings.data.copy_(table.mean(0) + 0.5 * noise)
        return prompt_tokens

    def logits(self, part: PromptTokens, tokens: Tensor, asked: Sequence[int]) -> Tensor:
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
        logits = self.target(
            inputs_embeds=part.rows.repeat(len(asked), 1)[None].expand(windows, -1, -1),
            attention_mask=added(sees, self.target.dtype).expand(windows, -1, -1, -1),
            position_ids=(places[:, None] + steps).flatten()[None].expand(windows, -1),
            past_key_values=cache,
            use_cache=True,
        ).logits
        return part.logits(logits.unflatten(1, (len(asked), count)))


STUDENT = PromptTokenStudent

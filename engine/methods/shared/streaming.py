"""StreamingLLM: uses the first columns of the text and the most recent columns.

Xiao et al., Efficient Streaming Language Models with Attention Sinks (ICLR 2024). Sun et al., TriForce (2024), and Chen
et al., MagicDec (2024), use it for drafting.
"""

import torch

from engine.methods.shared.selector import ColumnSelector, recent


class Streaming(ColumnSelector):
    key = "streaming"
    claim = "MagicDec, first version: up to 1.84 times as fast, Llama-3.1-8B, many texts on 8 A100"

    def changes(self, past):
        return True

    def columns(self, layer, keys):
        first = torch.arange(self.sinks, device=keys.device)
        return torch.cat([first, recent(keys.shape[1], self.budget - self.sinks, keys.device)])

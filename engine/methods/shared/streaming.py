"""StreamingLLM: reads the first columns of the text and the most recent ones.

Xiao et al., Efficient Streaming Language Models with Attention Sinks (ICLR 2024); as a draft's cache: Sun et al., TriForce
(2024), and Chen et al., MagicDec (2024).
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

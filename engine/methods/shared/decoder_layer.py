"""A decoder layer like those of the target."""

import copy

from torch import nn
from transformers import AutoModel, PreTrainedConfig


def decoder_like(config: PreTrainedConfig, layers: int) -> nn.Module:
    """A decoder of ``layers`` layers of this kind and a norm, without embeddings: its input is states."""
    config = copy.deepcopy(config)
    config.num_hidden_layers, config.vocab_size, config.pad_token_id = layers, 1, None
    if getattr(config, "layer_types", None):
        config.layer_types = config.layer_types[:1] * layers
    config._attn_implementation = "sdpa"
    made = AutoModel.from_config(config)
    made.set_input_embeddings(nn.Identity())
    return made

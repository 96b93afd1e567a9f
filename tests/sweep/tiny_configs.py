"""A tiny configuration of any causal architecture that transformers knows.

Sizes are recognised by their names and shrunk; everything else stays as the architecture has it. Windows and
original lengths are shorter than the texts of the sweep, so that they matter.
"""

import dataclasses

from transformers import PreTrainedConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from tests.sweep.settings import PARTICULAR, VARIANTS

VOCABULARY = 97
WINDOW = 10

_LAYERS, _HEADS, _HEAD, _WIDTH, _INNER = 2, 4, 8, 32, 48

_SIZES: list[tuple[int, str]] = [
    (
        _LAYERS,
        (
            "num_hidden_layers n_layer n_layers num_layers decoder_layers encoder_layers "
            "num_encoder_layers num_decoder_layers num_mem_blocks"
        ),
    ),
    (
        _HEADS,
        (
            "num_attention_heads n_head n_heads num_heads attention_heads decoder_attention_heads "
            "encoder_attention_heads num_encoder_attention_heads num_decoder_attention_heads "
            "swa_num_attention_heads linear_num_heads linear_num_value_heads index_n_heads "
            "n_routed_experts num_experts num_local_experts moe_num_experts mamba_num_heads n_mamba_heads"
        ),
    ),
    (
        2,
        (
            "num_key_value_heads swa_num_key_value_heads linear_num_key_heads num_experts_per_tok "
            "moe_k moe_topk index_topk_blocks zero_expert_num"
        ),
    ),
    (1, "n_group topk_group n_shared_experts num_random_blocks num_nextn_predict_layers n_groups"),
    (
        _HEAD,
        (
            "head_dim dim_head kv_channels swa_head_dim v_head_dim qk_nope_head_dim qk_rope_head_dim "
            "rotary_dim linear_head_dim linear_key_head_dim linear_value_head_dim attention_head_size "
            "index_head_dim mamba_head_dim state_size ssm_state_size mamba_d_state chunk_size "
            "mamba_chunk_size block_size keep_window_size index_block_size"
        ),
    ),
    (
        16,
        (
            "kv_lora_rank q_lora_rank o_lora_rank laurel_rank gated_norm_rank hidden_size_per_layer_input "
            "adapter_rank router_hidden_size hc_lowrank index_topk"
        ),
    ),
    (
        _WIDTH,
        (
            "hidden_size n_embd d_model emb_dim embedding_size input_embedding_size "
            "output_embedding_size dim_model_base pronunciation_embed_dim shape_embed_dim backbone_hidden_size"
        ),
    ),
    (
        _INNER,
        (
            "intermediate_size moe_intermediate_size n_inner ffn_dim decoder_ffn_dim encoder_ffn_dim dff dim_ff "
            "d_inner ffn_hidden_size expert_ffn_hidden_size shared_expert_intermediate_size "
            "shared_experts_intermediate_size intermediate_size_mlp dense_intermediate_size "
            "feed_forward_size shared_intermediate_size moe_shared_expert_intermediate_size"
        ),
    ),
    (
        WINDOW,
        (
            "sliding_window window_size local_attention attention_window_size sliding_window_size "
            "attention_chunk_size local_attention_window_len"
        ),
    ),
    (VOCABULARY, "vocab_size vocab_size_per_layer_input pronunciation_vocab_size shape_vocab_size"),
    (
        128,
        (
            "max_position_embeddings n_positions n_ctx max_seq_len max_target_positions context_length"
        ),
    ),
]
SIZES = {name: size for size, names in _SIZES for name in names.split()}


def config_of(name: str) -> PreTrainedConfig:
    """Return the configuration of a model type or of one of ``VARIANTS``, with small sizes. Raises the errors of its
    checks."""
    model_type, changes = VARIANTS.get(name, (name, {}))
    given = PARTICULAR.get(model_type, {}) | changes
    return _tiny(CONFIG_MAPPING[model_type], given)


def _tiny(cls: type[PreTrainedConfig], changes: dict) -> PreTrainedConfig:
    fields = {field.name: field for field in dataclasses.fields(cls)}
    given = {name: size for name, size in SIZES.items() if name in fields}
    given |= {name: _token(field) for name, field in fields.items() if name.endswith("_token_id")}
    if "layer_types" in fields:
        given["num_hidden_layers"] = 4  # layers of several kinds come in groups
    if "kv_lora_rank" in fields:
        given["num_key_value_heads"] = _HEADS  # latent attention has a key head for each head
    for name, part in _parts(cls).items():
        given[name] = _tiny(type(part), {})
    return cls(**given | changes)


def _parts(cls: type[PreTrainedConfig]) -> dict[str, PreTrainedConfig]:
    """Return the nested configurations that this architecture has by default."""
    names = [name for name in cls.sub_configs if name in {f.name for f in dataclasses.fields(cls)}]
    if not names:
        return {}
    usual = cls()
    found = {name: getattr(usual, name) for name in names}
    return {name: part for name, part in found.items() if isinstance(part, PreTrainedConfig)}


_ENDS = (
    "bos_token_id",
    "eos_token_id",
    "pad_token_id",
    "forced_eos_token_id",
    "decoder_start_token_id",
)


def _token(field: dataclasses.Field) -> int | None:
    """Where allowed, no token ends a text or is special. Padding stays: some modules count positions by it."""
    default = field.default
    small = isinstance(default, int) and default < 4
    if field.name == "pad_token_id" and small:
        return default
    if default is not None and field.name not in _ENDS:
        return default  # a token of an image or a sound, outside the tiny vocabulary
    return None if "None" in str(field.type) else default % 4

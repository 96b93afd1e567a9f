"""A tiny configuration of any causal architecture that transformers knows.

Sizes are shrunk by their names, everything else stays as the architecture has it. Windows and original
lengths are shorter than the texts of the sweep, so that they matter.
"""

import dataclasses

from transformers import PreTrainedConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

VOCABULARY = 97
WINDOW = 10

_LAYERS, _HEADS, _HEAD, _WIDTH, _INNER = 2, 4, 8, 32, 48

_SIZES: list[tuple[int, list[str]]] = [
    (
        _LAYERS,
        (
            "num_hidden_layers n_layer n_layers num_layers decoder_layers encoder_layers "
            "num_encoder_layers num_decoder_layers num_mem_blocks"
        ).split(),
    ),
    (
        _HEADS,
        (
            "num_attention_heads n_head n_heads num_heads attention_heads decoder_attention_heads "
            "encoder_attention_heads num_encoder_attention_heads num_decoder_attention_heads "
            "swa_num_attention_heads linear_num_heads linear_num_value_heads index_n_heads "
            "n_routed_experts num_experts num_local_experts moe_num_experts mamba_num_heads n_mamba_heads"
        ).split(),
    ),
    (
        2,
        (
            "num_key_value_heads swa_num_key_value_heads linear_num_key_heads num_experts_per_tok "
            "moe_k moe_topk index_topk_blocks zero_expert_num"
        ).split(),
    ),
    (
        1,
        "n_group topk_group n_shared_experts num_random_blocks num_nextn_predict_layers n_groups".split(),
    ),
    (
        _HEAD,
        (
            "head_dim dim_head kv_channels swa_head_dim v_head_dim qk_nope_head_dim qk_rope_head_dim "
            "rotary_dim linear_head_dim linear_key_head_dim linear_value_head_dim attention_head_size "
            "index_head_dim mamba_head_dim state_size ssm_state_size mamba_d_state chunk_size "
            "mamba_chunk_size block_size keep_window_size index_block_size"
        ).split(),
    ),
    (
        16,
        (
            "kv_lora_rank q_lora_rank o_lora_rank laurel_rank gated_norm_rank hidden_size_per_layer_input "
            "adapter_rank router_hidden_size hc_lowrank index_topk"
        ).split(),
    ),
    (
        _WIDTH,
        (
            "hidden_size n_embd d_model emb_dim embedding_size input_embedding_size "
            "output_embedding_size dim_model_base pronunciation_embed_dim shape_embed_dim backbone_hidden_size"
        ).split(),
    ),
    (
        _INNER,
        (
            "intermediate_size moe_intermediate_size n_inner ffn_dim decoder_ffn_dim encoder_ffn_dim dff dim_ff "
            "d_inner ffn_hidden_size expert_ffn_hidden_size shared_expert_intermediate_size "
            "shared_experts_intermediate_size intermediate_size_mlp dense_intermediate_size "
            "feed_forward_size shared_intermediate_size moe_shared_expert_intermediate_size"
        ).split(),
    ),
    (
        WINDOW,
        (
            "sliding_window window_size local_attention attention_window_size sliding_window_size "
            "attention_chunk_size local_attention_window_len"
        ).split(),
    ),
    (
        VOCABULARY,
        "vocab_size vocab_size_per_layer_input pronunciation_vocab_size shape_vocab_size".split(),
    ),
    (
        128,
        (
            "max_position_embeddings n_positions n_ctx max_seq_len max_target_positions context_length"
        ).split(),
    ),
]
SIZES = {name: size for size, names in _SIZES for name in names}


def config_of(name: str) -> PreTrainedConfig:
    """Of a model type, or of one of ``VARIANTS``, with small sizes. Raises what its checks raise."""
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
    """The configurations inside, as this architecture has them."""
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
    """No token ends a text or is special where that is allowed; padding tells some where they are."""
    default = field.default
    small = isinstance(default, int) and default < 4
    if field.name == "pad_token_id" and small:
        return default
    if default is not None and field.name not in _ENDS:
        return default  # of an image or a sound, outside the tiny vocabulary
    return None if "None" in str(field.type) else default % 4


def _rope(kinds: tuple[str, ...]) -> dict:
    return {kind: {"rope_type": "default", "rope_theta": 10000.0} for kind in kinds}


PARTICULAR: dict[str, dict] = {
    "bamba": {"mamba_n_heads": 8},
    "granitemoehybrid": {"mamba_n_heads": 8},
    "cohere_compass_text": {
        "layer_types": [
            "sliding_attention",
            "sliding_attention",
            "sliding_attention",
            "full_attention",
        ],
        "rope_parameters": _rope(("sliding_attention", "full_attention")),
    },
    "gemma3n_text": {"num_hidden_layers": 10, "num_kv_shared_layers": 5},
    "gpt_neo": {"attention_types": [[["global", "local"], 1]]},
    "lfm2_moe": {"layer_types": ["conv", "full_attention", "conv", "full_attention"]},
    "mamba2": {"num_heads": 8},
    "reformer": {
        "is_decoder": True,
        "axial_pos_shape": (8, 16),
        "axial_pos_embds_dim": (16, 16),
        "attn_layers": ["local", "lsh"],
        "num_hidden_layers": 2,
    },
    "xmod": {"default_language": "en_XX"},
    "zamba": {"layers_block_type": ["mamba", "hybrid", "mamba"], "num_hidden_layers": 3},
    "zamba2": {"layers_block_type": ["mamba", "hybrid", "mamba"], "num_hidden_layers": 3},
    "zaya": {"num_experts_per_tok": 1},
}
"""What the sizes alone do not settle."""

VARIANTS: dict[str, tuple[str, dict]] = {
    f"{model_type}, is_decoder": (model_type, {"is_decoder": True})
    for model_type in (
        "bert",
        "bert-generation",
        "big_bird",
        "camembert",
        "data2vec-text",
        "electra",
        "ernie",
        "megatron-bert",
        "rembert",
        "roberta",
        "roberta-prelayernorm",
        "roc_bert",
        "roformer",
        "xlm-roberta",
        "xlm-roberta-xl",
    )
}
"""Settings that make another model of an architecture: label -> model type and what is changed."""

_ROPE = {"rope_theta": 10000.0, "original_max_position_embeddings": 20}
_FACTORS = {"short_factor": [1.0, 1.1, 1.2, 1.3], "long_factor": [2.0, 3.0, 4.0, 5.0]}
LONGROPE = {"rope_type": "longrope", "factor": 4.0, **_ROPE, **_FACTORS}
VARIANTS |= {
    "phi3, longrope": (
        "phi3",
        {"rope_parameters": LONGROPE, "original_max_position_embeddings": 20},
    ),
    "phimoe, longrope": (
        "phimoe",
        {
            "rope_parameters": LONGROPE | {"short_mscale": 1.0, "long_mscale": 1.2},
            "sliding_window": None,
            "original_max_position_embeddings": 20,
        },
    ),
    "llama, longrope": ("llama", {"rope_parameters": LONGROPE}),
    "llama, dynamic": (
        "llama",
        {
            "rope_parameters": {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 2.0},
            "max_position_embeddings": 20,
        },
    ),
    "llama, llama3": (
        "llama",
        {
            "rope_parameters": _ROPE
            | {
                "rope_type": "llama3",
                "factor": 4.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
            }
        },
    ),
    "llama, yarn": ("llama", {"rope_parameters": {"rope_type": "yarn", "factor": 4.0} | _ROPE}),
    "llama, linear": (
        "llama",
        {"rope_parameters": {"rope_type": "linear", "rope_theta": 10000.0, "factor": 2.0}},
    ),
    "falcon, alibi": ("falcon", {"alibi": True}),
    "falcon, several queries": ("falcon", {"new_decoder_architecture": True, "num_kv_heads": 2}),
    "bart, forced end": ("bart", {"forced_eos_token_id": 2}),
}

"""Settings that a tiny configuration needs besides its sizes, and settings that turn an architecture into another."""


def _rope(kinds: tuple[str, ...]) -> dict:
    return {kind: {"rope_type": "default", "rope_theta": 10000.0} for kind in kinds}


PARTICULAR: dict[str, dict] = {
    "bamba": {"mamba_n_heads": 8, "attn_layer_indices": [1]},
    "granitemoehybrid": {
        "mamba_n_heads": 8,
        "layer_types": ["linear_attention", "full_attention"] * 2,
    },
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
"""Settings that an architecture needs besides the sizes."""

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
"""Settings that turn an architecture into another: label -> model type and changed settings."""

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

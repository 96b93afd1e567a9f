"""Tiny EAGLE checkpoints of every published layout, with the authors' tensor names."""

import json

import torch
from safetensors.torch import save_file

TARGET = {"hidden_size": 32, "vocab_size": 61, "num_hidden_layers": 8}
H, V, DRAFT = 32, 61, 20
HEADS, KV, D, INNER = 4, 2, 8, 40
BASE = {
    "model_type": "llama",
    "hidden_size": H,
    "intermediate_size": INNER,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV,
    "num_hidden_layers": 1,
    "vocab_size": V,
    "rms_norm_eps": 1e-5,
    "hidden_act": "silu",
    "max_position_embeddings": 2048,
    "rope_theta": 5000.0,
    "rope_scaling": None,
    "tie_word_embeddings": False,
    "pad_token_id": 0,
}


def layer(prefix: str, width: int, norms: tuple[str, ...]) -> dict:
    shapes = {
        "self_attn.q_proj.weight": (HEADS * D, width),
        "self_attn.k_proj.weight": (KV * D, width),
        "self_attn.v_proj.weight": (KV * D, width),
        "self_attn.o_proj.weight": (H, HEADS * D),
        "mlp.gate_proj.weight": (INNER, H),
        "mlp.up_proj.weight": (INNER, H),
        "mlp.down_proj.weight": (H, INNER),
        "post_attention_layernorm.weight": (H,),
    }
    shapes |= {f"{norm}.weight": (H,) for norm in norms}
    return {f"{prefix}.{name}": shape for name, shape in shapes.items()}


def eagle() -> tuple[dict, dict]:
    """Config and shapes of EAGLE-1 and 2, including the embeddings that the authors' files contain."""
    shapes = {"embed_tokens.weight": (V, H), "fc.weight": (H, 2 * H), "fc.bias": (H,)}
    config = {**BASE, "architectures": ["LlamaForCausalLM"]}
    return config, {**shapes, **layer("layers.0", H, ())}


def _fused(first: str) -> dict:
    shapes = {"fc.weight": (H, 3 * H), "norm.weight": (H,), "lm_head.weight": (DRAFT, H)}
    return {**shapes, **layer(first, 2 * H, ("hidden_norm", "input_layernorm"))}


def eagle3() -> tuple[dict, dict]:
    config = {**BASE, "architectures": ["LlamaForCausalLMEagle3"], "draft_vocab_size": DRAFT}
    return config, _fused("midlayer")


def speculators() -> tuple[dict, dict]:
    config = {
        "architectures": ["Eagle3Speculator"],
        "speculators_model_type": "eagle3",
        "speculators_version": "0.1.0",
        "draft_vocab_size": DRAFT,
        "norm_before_residual": True,
        "target_hidden_size": None,
        "eagle_aux_hidden_state_layer_ids": [1, 3, 6],
        "speculators_config": {"algorithm": "eagle3", "verifier": {"name_or_path": "a/b"}},
        "transformer_layer_config": {**BASE, "head_dim": D},
    }
    return config, {**_fused("layers.0"), "embed_tokens.weight": (V, H)}


def eagle31() -> tuple[dict, dict]:
    """Return config and shapes of EAGLE-3.1: each of the three features has a norm, and the next row reads the normed
    state."""
    config, shapes = speculators()
    norms = {f"fc_norm.{place}.weight": (H,) for place in range(3)}
    return {**config, "fc_norm": True, "norm_output": True}, shapes | norms


def peagle() -> tuple[dict, dict]:
    """Return config and shapes of P-EAGLE: it has a second layer, and a feature for tokens that are not written yet."""
    config, shapes = speculators()
    inner = {**config["transformer_layer_config"], "num_hidden_layers": 2}
    config |= {"speculators_model_type": "peagle", "norm_before_residual": False}
    config |= {"mask_token_id": 7, "transformer_layer_config": inner}
    second = layer("layers.1", H, ("input_layernorm",))
    return config, {**shapes, **second, "mask_hidden": (1, 1, 3 * H)}


LAYOUTS = {"eagle": eagle, "eagle3": eagle3, "speculators": speculators, "eagle31": eagle31}
EVERY = {**LAYOUTS, "peagle": peagle}
"""That of cells that draft all tokens at once among them."""


def tensors_of(shapes: dict) -> dict[str, torch.Tensor]:
    torch.manual_seed(5)
    found = {}
    for name, shape in shapes.items():
        near = 1.0 if "norm" in name else 0.0
        found[name] = near + 0.2 * torch.randn(shape)
    if "lm_head.weight" in shapes:
        chosen = torch.randperm(V)[:DRAFT].sort().values
        found["d2t"] = chosen - torch.arange(DRAFT)
        found["t2d"] = torch.zeros(V, dtype=torch.bool).index_fill(0, chosen, True)
    return found


def checkpoint(folder, config: dict, tensors: dict):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    save_file(tensors, folder / "model.safetensors")
    return folder

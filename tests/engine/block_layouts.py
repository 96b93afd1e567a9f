"""Tiny checkpoints of DFlash's family in their published layouts, and what they draft by the formulas alone."""

import torch
import torch.nn.functional as F

from tests.engine.eagle_cells import checkpoint

H, V, HEADS, KV, D, INNER, LAYERS, RANK, EPS = 16, 11, 2, 1, 8, 24, 2, 3, 1e-6
LAYER = {
    "model_type": "qwen3",
    "vocab_size": V,
    "hidden_size": H,
    "intermediate_size": INNER,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV,
    "head_dim": D,
    "rms_norm_eps": EPS,
    "rope_theta": 5000.0,
    "layer_types": ["full_attention"] * LAYERS,
}
AUX = [1, 2]  # counted as hidden states are, 0 is the embedding


def speculators(kind: str, **changes) -> dict:
    """Return a config as speculators 0.9 writes it."""
    return {
        "architectures": ["DSparkDraftModel"],
        "speculators_model_type": kind,
        "speculators_version": "0.9.0",
        "transformer_layer_config": LAYER,
        "draft_vocab_size": V,
        "block_size": 4,
        "aux_hidden_state_layer_ids": AUX,
        "mask_token_id": 0,
        "sample_from_anchor": kind == "dspark",
        "speculators_config": {"algorithm": kind},
    } | changes


def authors() -> dict:
    """A config of DSpark's authors: flat, layers counted from 0, and nothing is said of the anchor."""
    return {
        **LAYER,
        "architectures": ["Qwen3DSparkModel"],
        "block_size": 4,
        "target_layer_ids": [aux - 1 for aux in AUX],
        "mask_token_id": 0,
        "markov_rank": RANK,
        "markov_head_type": "vanilla",
    }


def tensors(kind: str) -> dict[str, torch.Tensor]:
    shapes = {
        "fc.weight": (H, len(AUX) * H),
        "hidden_norm.weight": (H,),
        "norm.weight": (H,),
        "embed_tokens.weight": (V, H),
    }
    for layer in range(LAYERS):
        own = {
            "self_attn.q_proj.weight": (HEADS * D, H),
            "self_attn.k_proj.weight": (KV * D, H),
            "self_attn.v_proj.weight": (KV * D, H),
            "self_attn.o_proj.weight": (H, HEADS * D),
            "self_attn.q_norm.weight": (D,),
            "self_attn.k_norm.weight": (D,),
            "mlp.gate_proj.weight": (INNER, H),
            "mlp.up_proj.weight": (INNER, H),
            "mlp.down_proj.weight": (H, INNER),
            "input_layernorm.weight": (H,),
            "post_attention_layernorm.weight": (H,),
        }
        shapes |= {f"layers.{layer}.{name}": shape for name, shape in own.items()}
    if kind == "dspark":
        shapes |= {
            "markov_head.markov_w1.weight": (V, RANK),
            "markov_head.markov_w2.weight": (V, RANK),
            "confidence_head.proj.weight": (1, H + RANK),
            "confidence_head.proj.bias": (1,),
        }
    if kind == "dflash2":
        shapes |= {
            "candidate_selector.predecessor_codebook": (V, RANK),
            "candidate_selector.successor_codebook": (V, RANK),
            "candidate_selector.hidden_projection.weight": (RANK, H),
        }
    shapes["verifier_norm.weight"] = (H,)  # a copy of the target's
    torch.manual_seed(7)
    heads = ("markov_head", "confidence_head", "candidate_selector")
    return {
        name: (len(shape) == 1) + torch.randn(shape) * (1.0 if name.startswith(heads) else 0.3)
        for name, shape in shapes.items()
    }


def written(folder, config: dict, kind: str) -> str:
    return str(checkpoint(folder, config, tensors(kind)))


def block_states(w: dict, features: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Return the states [B, H] of a block. The rows are its embeddings [B, H]; features [T, n*H] are those of the text
    before it."""
    context = _rms(features @ w["fc.weight"].T, w["hidden_norm.weight"])
    places, length = torch.arange(len(context) + len(rows)), len(context)
    for layer in range(LAYERS):
        own = {k.split(".", 2)[2]: v for k, v in w.items() if k.startswith(f"layers.{layer}.")}
        given = _rms(rows, own["input_layernorm.weight"])
        both = torch.cat([context, given])
        q = _turned(_heads(given, own, "q"), places[length:])
        k, v = _turned(_heads(both, own, "k"), places), _heads(both, own, "v", normed=False)
        k, v = (one.repeat_interleave(HEADS // KV, 1) for one in (k, v))
        weights = (torch.einsum("rhd,shd->hrs", q, k) / D**0.5).softmax(-1)
        mixed = torch.einsum("hrs,shd->rhd", weights, v).flatten(1)
        rows = rows + mixed @ own["self_attn.o_proj.weight"].T
        given = _rms(rows, own["post_attention_layernorm.weight"])
        up = F.silu(given @ own["mlp.gate_proj.weight"].T) * (given @ own["mlp.up_proj.weight"].T)
        rows = rows + up @ own["mlp.down_proj.weight"].T
    return _rms(rows, w["norm.weight"])


def _rms(x, weight):
    return x * (x.square().mean(-1, keepdim=True) + EPS).rsqrt() * weight


def _heads(rows, own, which, normed=True):
    found = (rows @ own[f"self_attn.{which}_proj.weight"].T).unflatten(-1, (-1, D))
    return _rms(found, own[f"self_attn.{which}_norm.weight"]) if normed else found


def _turned(x, places):
    angles = places[:, None] * 5000.0 ** (-torch.arange(0, D, 2) / D)
    cos, sin = angles.cos()[:, None], angles.sin()[:, None]
    a, b = x[..., : D // 2], x[..., D // 2 :]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

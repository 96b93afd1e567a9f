"""Converts a Llama in a GGUF file to a folder in Hugging Face format, with its weights unpacked to float32.

The folder is opened like any other, so no other code of the engine knows GGUF. One tensor at a time is in memory, and
neither torch nor transformers is imported. The same file always gives the same bytes, so that parts trained for the
model recognise it by its digest (``engine.parts.digest``).
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.progress import Tell, silent

if TYPE_CHECKING:
    import numpy as np
    from gguf import GGUFReader

WEIGHTS = "model.safetensors"
WHOLE = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
"""Names of tensors in a GGUF file -> names in a Hugging Face checkpoint."""
CONTROL, OWN = 3, 4
"""Types of tokens that are no text: control tokens, and tokens that a user has added."""
SPLITS = ("smollm",)
"""The supported kinds of pre-tokenizer, which splits a text before byte pairs are merged. ``smollm`` splits at each
digit, and then as GPT-2 does."""


def unpack(file: Path, folder: Path, tell: Tell = silent) -> None:
    """Write the model in a GGUF file to an empty folder.

    Raises ValueError, whose message is a clause for the end of the caller's sentence, for a file that is damaged or
    does not hold a Llama with a supported tokenizer; OSError if the folder cannot be written; and ImportError without
    the package gguf.
    """
    from gguf import GGUFReader

    try:
        reader = GGUFReader(file)
        facts = {name: field for name, field in reader.fields.items()}
        config = _config(lambda name: facts[name].contents(), reader)
        tokenizer = _tokenizer(lambda name: facts[name].contents())
    except KeyError as error:
        raise ValueError(f"it lacks {error.args[0]}") from None
    except (IndexError, UnicodeDecodeError) as error:
        raise ValueError("it is damaged or cut off") from error
    for name, content in (config | tokenizer).items():
        (folder / name).write_text(content, "utf-8")
    _write_weights(reader, folder / WEIGHTS, tell)


def _config(fact: Callable[[str], Any], reader: GGUFReader) -> dict[str, str]:
    """config.json and generation_config.json: file name -> content."""
    if fact("general.architecture") != "llama":
        raise ValueError("it holds no Llama")
    ends = {
        "bos_token_id": fact("tokenizer.ggml.bos_token_id"),
        "eos_token_id": fact("tokenizer.ggml.eos_token_id"),
        "pad_token_id": fact("tokenizer.ggml.padding_token_id"),
    }
    heads = fact("llama.attention.head_count")
    config = {
        "architectures": ["LlamaForCausalLM"],
        "attention_bias": False,
        "dtype": "float32",
        "head_dim": fact("llama.rope.dimension_count"),
        "hidden_act": "silu",
        "hidden_size": fact("llama.embedding_length"),
        "intermediate_size": fact("llama.feed_forward_length"),
        "max_position_embeddings": fact("llama.context_length"),
        "mlp_bias": False,
        "model_type": "llama",
        "num_attention_heads": heads,
        "num_hidden_layers": fact("llama.block_count"),
        "num_key_value_heads": fact("llama.attention.head_count_kv"),
        "rms_norm_eps": float(f"{fact('llama.attention.layer_norm_rms_epsilon'):.6g}"),
        "rope_parameters": {"rope_theta": fact("llama.rope.freq_base"), "rope_type": "default"},
        "rope_theta": fact("llama.rope.freq_base"),  # where transformers before 5 look for it
        "tie_word_embeddings": all(tensor.name != "output.weight" for tensor in reader.tensors),
        "vocab_size": len(fact("tokenizer.ggml.tokens")),
        **ends,
    }
    return {"config.json": _json(config), "generation_config.json": _json(ends)}


def _tokenizer(fact: Callable[[str], Any]) -> dict[str, str]:
    """The tokenizer's files with the chat template: file name -> content. The tokenizer is byte-level BPE."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    if fact("tokenizer.ggml.model") != "gpt2" or fact("tokenizer.ggml.pre") not in SPLITS:
        raise ValueError("its tokenizer is of a kind that is not known here")
    tokens, types = fact("tokenizer.ggml.tokens"), fact("tokenizer.ggml.token_type")
    merges = [tuple(pair.split(" ")) for pair in fact("tokenizer.ggml.merges")]
    tokenizer = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges))
    digits = pre_tokenizers.Digits(individual_digits=True)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [digits, pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    for token, kind in zip(tokens, types, strict=True):
        if kind in (CONTROL, OWN):
            tokenizer.add_tokens([AddedToken(token, normalized=False, special=kind == CONTROL)])
    settings = {
        "bos_token": tokens[fact("tokenizer.ggml.bos_token_id")],
        "chat_template": fact("tokenizer.chat_template"),
        "clean_up_tokenization_spaces": False,
        "eos_token": tokens[fact("tokenizer.ggml.eos_token_id")],
        "model_max_length": fact("llama.context_length"),
        "pad_token": tokens[fact("tokenizer.ggml.padding_token_id")],
        "tokenizer_class": "PreTrainedTokenizerFast",
        "unk_token": tokens[fact("tokenizer.ggml.unknown_token_id")],
    }
    return {"tokenizer.json": tokenizer.to_str(), "tokenizer_config.json": _json(settings)}


def _json(content: Mapping[str, object]) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _write_weights(reader: GGUFReader, file: Path, tell: Tell) -> None:
    """Write the tensors to a safetensors file, in the order of their names."""
    import numpy as np
    from gguf import dequantize

    heads = {
        "attn_q": reader.fields["llama.attention.head_count"].contents(),
        "attn_k": reader.fields["llama.attention.head_count_kv"].contents(),
    }
    tensors = {
        _named(tensor.name): tensor
        for tensor in reader.tensors
        if tensor.name != "rope_freqs.weight"
    }
    entries: dict[str, dict] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name in sorted(tensors):
        shape = [int(size) for size in reversed(tensors[name].shape)]
        begin, end = end, end + 4 * int(np.prod(shape))
        entries[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}
    header = json.dumps(entries, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    with file.open("wb") as stream:
        stream.write(struct.pack("<Q", len(header)) + header)
        for count, name in enumerate(sorted(tensors)):
            tensor = tensors[name]
            numbers = dequantize(tensor.data, tensor.tensor_type).astype(np.float32, copy=False)
            kind = tensor.name.split(".")[-2]
            if kind in heads:
                numbers = _in_halves(numbers, heads[kind])
            begin, end = entries[name]["data_offsets"]
            if numbers.nbytes != end - begin:
                raise ValueError(f"{tensor.name} is cut off")
            stream.write(np.ascontiguousarray(numbers).data)
            tell("Unpacking the weights", (count + 1) / len(tensors))


def _named(name: str) -> str:
    """The name of a GGUF tensor in a Hugging Face checkpoint."""
    parts = name.split(".")
    if name in WHOLE:
        return WHOLE[name]
    if len(parts) == 4 and parts[0] == "blk" and parts[2] in LAYER and parts[3] == "weight":
        return f"model.layers.{parts[1]}.{LAYER[parts[2]]}.weight"
    raise ValueError(f"it holds {name}, which is no tensor of a Llama")


def _in_halves(numbers: np.ndarray, heads: int) -> np.ndarray:
    """[heads * width, H]: the rows of each head reordered for transformers' rotary embedding. A GGUF file has the two
    rows that rotate together side by side; transformers has one in each half of the head."""
    half = numbers.shape[0] // heads // 2
    return numbers.reshape(heads, half, 2, -1).swapaxes(1, 2).reshape(numbers.shape)

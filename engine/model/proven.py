"""Lists the architectures whose passes the tests compare with their modules (``tests/engine/test_proven.py``)."""

from transformers import PreTrainedConfig, PreTrainedModel

PROVEN: dict[str, str] = {
    "BambaForCausalLM": "hybrid",
    "BloomForCausalLM": "masked",
    "CaptionsForCausalLM": "captions",
    "CodeGenForCausalLM": "masked",
    "Cohere2ForCausalLM": "usual",
    "CohereForCausalLM": "usual",
    "ExpertsForCausalLM": "experts",
    "Gemma2ForCausalLM": "usual",
    "Gemma3ForCausalLM": "usual",
    "GemmaForCausalLM": "usual",
    "GPT2LMHeadModel": "usual",
    "GPTJForCausalLM": "masked",
    "GPTNeoXForCausalLM": "usual",
    "GptOssForCausalLM": "usual",
    "GraniteForCausalLM": "usual",
    "LlamaForCausalLM": "usual",
    "MinistralForCausalLM": "usual",
    "MistralForCausalLM": "usual",
    "MixtralForCausalLM": "usual",
    "Olmo2ForCausalLM": "usual",
    "Olmo3ForCausalLM": "usual",
    "OPTForCausalLM": "usual",
    "Phi3ForCausalLM": "usual",
    "PhiForCausalLM": "usual",
    "Qwen2ForCausalLM": "usual",
    "Qwen2MoeForCausalLM": "usual",
    "Qwen3ForCausalLM": "usual",
    "Qwen3MoeForCausalLM": "usual",
    "SmolLM3ForCausalLM": "usual",
    "StableLmForCausalLM": "masked",
    "Starcoder2ForCausalLM": "usual",
}
"""From the name of a module's class to the way in which the engine runs this module (``engine.parts.opening``)."""

ROPES = {"default", "linear", "dynamic", "yarn", "longrope", "llama3"}
"""The kinds of rotary embedding with which the classes in PROVEN were tested."""


def proven_way(module: PreTrainedModel) -> str | None:
    """The way in which this module may be run without a check; None if the tests have not proven any."""
    if not _ropes(module.config.get_text_config(decoder=True)) <= ROPES:
        return None
    return PROVEN.get(type(module).__name__)


def _ropes(config: PreTrainedConfig) -> set[str]:
    rope = getattr(config, "rope_parameters", None) or {}
    kinds = [rope, *(part for part in rope.values() if isinstance(part, dict))]
    return {kind["rope_type"] for kind in kinds if kind.get("rope_type")}

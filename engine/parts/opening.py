"""The one module that chooses how the passes of a model are run.

Authors of drafters need not know the choices: passes through the plain module, passes compiled for a CPU
(``engine.fast.cpu``), passes on static buffers (``engine.fast.gpu``). All of them use the same weights and give the
same numbers.
"""

import logging
from contextlib import suppress
from pathlib import Path

import torch
from transformers import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    AutoConfig,
    AutoModelForCausalLM,
    GenerationConfig,
    PreTrainedModel,
)

from engine.bounded.bounded_tokenizer import open_tokenizer
from engine.errors import UserError
from engine.fast.cpu.compiled_model import compiled_model
from engine.model.admission import CHAINS, admitted
from engine.model.by_length import ByLengthModel, reads_by_length
from engine.model.captions import CaptionsForCausalLM, CaptionsModel
from engine.model.checkpoint_rules import check_rules, unapplied
from engine.model.edges import window_of
from engine.model.experts import ExpertsForCausalLM, ExpertsModel
from engine.model.hybrid import HybridModel
from engine.model.language_model import (
    LanguageModel,
    keeps_state,
    refuse_unreadable,
    takes_attention,
)
from engine.model.own_attention import ChainModel, MaskedModel
from engine.parts.files import WEIGHTS, in_eight_bits, stored_tensors
from engine.parts.hub import folder_of, name_of
from engine.parts.inspection import inspect
from engine.parts.promise import quiet, refuse_missing
from engine.parts.size_limits import check_room
from engine.parts.stored_file import PACKED, weights_at, weights_in

ANYWHERE = "/"
"""The folder that no link may lead out of, for ``inspect``. Being the root, it allows all links, because users of the
command line may read their own files."""
PICKLED = (".bin", ".pt", ".pth", ".ckpt", ".pkl")


def language_model(
    module: PreTrainedModel,
    tokenizer,
    name: str,
    lean: bool = True,
    static: bool | None = None,
) -> LanguageModel:
    """The module as a language model of the engine.

    lean: make passes with little overhead: compiled on a CPU if the module can be compiled, on static buffers with
    joined products; False keeps the module's own forward.
    static: make passes on static buffers; None does so on CUDA, where they become CUDA graphs.
    """
    static = module.device.type == "cuda" if static is None else static
    own = module.config._attn_implementation
    usual = {
        "usual": lambda: _usual(module, tokenizer, name, lean, static),
        "module": lambda: LanguageModel(module, tokenizer, name),
    }
    masked = {
        "masked": lambda: MaskedModel(module, tokenizer, name, own),
        "windowed": lambda: MaskedModel(module, tokenizer, name, own, window_of(module.config)),
        CHAINS: lambda: ChainModel(module, tokenizer, name, own),
    }
    if keeps_state(module):
        ways = {"hybrid": lambda: HybridModel(module, tokenizer, name)}
    elif isinstance(module, ExpertsForCausalLM):
        ways = {"experts": lambda: ExpertsModel(module, tokenizer, name)}
    elif isinstance(module, CaptionsForCausalLM):
        ways = {"captions": lambda: CaptionsModel(module, tokenizer, name)}
    else:
        ways = usual | masked if takes_attention(module) else masked
    return admitted(module, name, ways, setting=f"lean {lean}, static {static}")


def _usual(
    module: PreTrainedModel, tokenizer, name: str, lean: bool, static: bool
) -> LanguageModel:
    """The module as the fastest kind of language model for modules that accept an attention function."""
    if reads_by_length(module):
        return ByLengthModel(module, tokenizer, name)
    if lean and not static and module.device.type == "cpu":
        compiled = compiled_model(module, tokenizer, name)
        if compiled is not None:
            return compiled
    from engine.fast import gpu  # imports Triton, which a compiled model does not need

    return gpu.language_model(module, tokenizer, name, lean, static)


def load_language_model(
    path: str, dtype: torch.dtype | None = None, device: str = "cpu", tokenizer=None
) -> LanguageModel:
    """Open a folder or Hub name. Only safetensors are read, and no code that comes with the model is run.

    tokenizer: replaces the checkpoint's tokenizer. Raises UserError if there is no usable model, or too little memory
    for it.
    """
    folder = Path(path)
    if not folder.is_dir():
        folder = folder_of(path)
    refuse_pickled(str(folder))
    checkpoint = inspect(folder, ANYWHERE, name_of(folder))
    name = checkpoint.name
    if torch.device(device).type == "cpu":
        check_room(checkpoint, (dtype or torch.float32).itemsize)
    try:
        module = causal_model(str(folder), dtype)
    except UserError:
        raise
    except Exception as error:  # transformers raises many kinds for one cause
        raise UserError(f"There is no causal language model to open at {name}.") from error
    tokenizer = open_tokenizer(folder, name) if tokenizer is None else tokenizer
    module = module.to(device)
    refuse_unreadable(module, name)
    _refuse_contradictions(module, name)
    model = language_model(module, tokenizer, name.rpartition("/")[2])
    check_rules(model)
    left_out = unapplied(module.generation_config)
    if left_out:
        logging.getLogger(__name__).warning(
            "%s asks generate for %s; the engine takes p as the model gives it.",
            name,
            ", ".join(left_out),
        )
    return model


@torch.no_grad()
def _refuse_contradictions(module: PreTrainedModel, name: str) -> None:
    """Raises UserError for a module that cannot read a token: its configuration fits the weights, but contradicts
    itself."""
    try:
        module.eval()(input_ids=torch.zeros(1, 1, dtype=torch.long, device=module.device))
    except Exception as error:  # modules raise many kinds of exception for one cause
        raise UserError(f"The configuration of {name} contradicts itself.") from error


def causal_model(path: str, dtype: torch.dtype | None = None) -> PreTrainedModel:
    """The module of a folder or Hub name. Weights in 8 bits (``engine.parts.eight_bit``) and compressed weights
    (``stored_file``) are unpacked. dtype: None takes the config's. Raises the exceptions of transformers, and UserError
    for 8-bit weights without a scale and for missing weights."""
    file = weights_at(Path(path), WEIGHTS)
    with quiet():
        if file is not None and (file.suffix == PACKED or in_eight_bits(file)):
            config = AutoConfig.from_pretrained(path, trust_remote_code=False)
            config.quantization_config = None
            module, report = MODEL_FOR_CAUSAL_LM_MAPPING[type(config)].from_pretrained(
                None,
                config=config,
                state_dict=stored_tensors(file),
                dtype=dtype or config.dtype or torch.float32,
                output_loading_info=True,
            )
            with suppress(OSError):  # there may be no such file
                module.generation_config = GenerationConfig.from_pretrained(path)
        else:
            module, report = AutoModelForCausalLM.from_pretrained(
                path,
                dtype=dtype or "auto",
                use_safetensors=True,
                trust_remote_code=False,
                output_loading_info=True,
            )
    refuse_missing(sorted(report["missing_keys"]), name_of(path))
    return module


def refuse_pickled(path: str) -> None:
    """Raises UserError for a folder that has pickled weights only: opening them can run code."""
    folder = Path(path)
    names = [file.name for file in folder.iterdir()] if folder.is_dir() else []
    pickled = [name for name in names if name.endswith(PICKLED)]
    if pickled and not weights_in(folder):
        raise UserError(
            f"The weights in {folder.name} are pickled ({pickled[0]}), and to open those can run "
            "code; save the model as safetensors."
        )

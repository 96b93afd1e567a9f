"""Opens draft models: causal language models with the target's tokenizer, or copies of some of the target's layers.

The folder of such a draft model may lack tokenizer files.
"""

import copy
from pathlib import Path
from weakref import WeakKeyDictionary

import torch

from engine.methods.shared.layers_draft import LAYERS, LayersDraft
from engine.model.language_model import LanguageModel
from engine.parts.files import read_config
from engine.parts.kinds import Opener, PartKind
from engine.parts.models import check_same_vocabulary, open_model

TOKENIZERS = (
    "tokenizer.json",
    "tokenizer_config.json",
    "tokenizer.model",
    "vocab.json",
    "vocab.txt",
)
"""A folder with one of these files has its own tokenizer."""
_BESIDE: WeakKeyDictionary[LanguageModel, dict[str, LanguageModel]] = WeakKeyDictionary()
"""Target -> path -> opened draft model, for draft models that share weights with their target."""


def _load(path: str, target: LanguageModel, dtype, device: str) -> LanguageModel:
    if LAYERS in read_config(Path(path)):
        drafts = _BESIDE.setdefault(target, {})
        if path not in drafts:
            part = LayersDraft.open(path, target, dtype, device)
            drafts[path] = part.beside(target, Path(path).name)
        return drafts[path]
    return open_draft(path, target, dtype, device)


def open_draft(path: str, target: LanguageModel, dtype, device: str) -> LanguageModel:
    """Return the draft model in a folder, with the target's tokenizer if the folder has none. Raises UserError if the
    vocabularies of the draft model and the target differ."""
    folder = Path(path)
    bare = folder.is_dir() and not any((folder / name).is_file() for name in TOKENIZERS)
    draft = open_model(path, dtype, device, *[target.tokenizer] * bare)
    check_same_vocabulary(target, draft)
    return draft


@torch.no_grad()
def tiny_draft(target: LanguageModel, opener: Opener) -> LanguageModel:
    """Return a copy of the target with a little noise on its weights, so that most of its guesses are right, but not
    all."""
    module = copy.deepcopy(target.model)
    for weight in module.parameters():
        weight += 0.1 * torch.randn_like(weight)
    return opener(module)


KIND = PartKind("draft", "draft model", _load, tiny_draft)

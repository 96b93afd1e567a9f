"""Tiny parts by kind, for tests that go over every drafter. A new kind is one line of ``MAKERS``."""

import copy
import itertools
from collections.abc import Callable, Iterable

import numpy as np
import torch

from engine.core.options import resolve
from engine.methods import Drafter
from engine.methods.deer.part import DiffusionLM, DiffusionLMConfig
from engine.methods.falcon.falcon_cell import FalconCell, FalconConfig
from engine.methods.hidden_transfer.part import TransferMaps
from engine.methods.kangaroo.adapter import Adapter, AdapterConfig
from engine.methods.learn2pd.part import UnmaskingFilter
from engine.methods.omnidraft.part import ForeignDraft
from engine.methods.omnidraft.spelling import Spelling
from engine.methods.s2d.part import NestedDraft
from engine.methods.shared.datastore_part import Datastore
from engine.methods.shared.dflash_model import DFlashConfig, DFlashModel
from engine.methods.shared.eagle_cell import EagleCell
from engine.methods.shared.eagle_config import EagleConfig
from engine.methods.shared.prompt_tokens_part import PromptTokens
from engine.methods.shared.vocabulary_part import Vocabulary
from engine.methods.specdec_pp.part import AcceptanceHead
from engine.model.language_model import LanguageModel
from engine.parts.loading import Models
from engine.training.students import student_class

Opener = Callable[[torch.nn.Module], LanguageModel]
"""Turns a module into a language model of the engine: plain, lean, or on static buffers."""


SEED = 2
"""The seed of each part's weights; with it, every drafter guesses right now and then."""


def tiny_parts(target: LanguageModel, drafters: Iterable[type[Drafter]], opener: Opener) -> Models:
    """The target, and a random part for each role that one of the drafters needs."""
    needs = {role: kind for cls in drafters for role, kind in cls.needs.items()}
    parts = {}
    for role, kind in needs.items():
        torch.manual_seed(SEED)
        parts[role] = MAKERS[kind](target, opener)
    return Models(target, parts)


def on_trial(cls: type[Drafter], models: Models, **options) -> Drafter:
    """A drafter with the options that show it at work on tiny models."""
    return cls.build(resolve(cls.key, cls.options, {**cls.trial, **options}), models)


@torch.no_grad()
def _draft(target: LanguageModel, opener: Opener) -> LanguageModel:
    """The target with a little noise on its weights: its guesses are often right, but not always."""
    module = copy.deepcopy(target.model)
    for weight in module.parameters():
        weight += 0.1 * torch.randn_like(weight)
    return opener(module)


def _foreign_draft(target: LanguageModel, opener: Opener) -> ForeignDraft:
    return foreign_draft(target.vocab_size, target.model, opener)


@torch.no_grad()
def foreign_draft(
    vocabulary: int, module: torch.nn.Module, opener: Opener, share: float = 0.75
) -> ForeignDraft:
    """A draft with this share of the target's tokens; each other token is a run of two of these. Its weights are the
    target's with noise, so that it is right now and then."""
    known = round(share * min(vocabulary, module.get_input_embeddings().num_embeddings))
    runs = [(token,) for token in range(known)]
    pairs = ((one, other) for one in range(known) for other in range(known))
    runs += list(itertools.islice(pairs, vocabulary - known))
    config = copy.deepcopy(module.config)
    config.vocab_size = known
    draft = type(module)(config)
    given = module.state_dict()
    for name, weight in draft.state_dict().items():
        same = given[name][: len(weight)] if weight.dim() else given[name]
        weight.copy_(same + 0.1 * torch.randn_like(same) if same.is_floating_point() else same)
    pieces = tuple(chr(ord("a") + token % 26) for token in range(known))
    return ForeignDraft(opener(draft), Spelling(tuple(runs), pieces))


def _nested_draft(target: LanguageModel, opener: Opener) -> NestedDraft:
    """A draft as from ``_draft``, with an exit behind its first layer."""
    return NestedDraft(_draft(target, opener), (1, target.layers))


def _denoiser(target: LanguageModel, opener: Opener) -> DFlashModel:
    config = DFlashConfig(
        vocab_size=target.vocab_size,
        hidden_size=target.hidden_size,
        intermediate_size=24,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=8,
        block_size=4,
        target_layer_ids=(0, target.layers - 1),
        mask_token_id=0,
        num_target_layers=target.layers,
    )
    return DFlashModel(config).eval().requires_grad_(False)


def _medusa_heads(target: LanguageModel, opener: Opener) -> torch.nn.Module:
    return beginners("medusa", target)


def _hydra_heads(target: LanguageModel, opener: Opener) -> torch.nn.Module:
    return beginners("hydra", target)


def _clover_heads(target: LanguageModel, opener: Opener) -> torch.nn.Module:
    return beginners("clover", target)


def _chimera_heads(target: LanguageModel, opener: Opener) -> torch.nn.Module:
    return beginners("chimera", target)


@torch.no_grad()
def beginners(key: str, target: LanguageModel, **options) -> torch.nn.Module:
    """Two untrained heads with noise on their weights, so that their predictions differ."""
    cls = student_class(key)
    settings = resolve(key, cls.options, {"heads": 2, **options})
    part = cls(target.model, settings).start()
    for weight in part.parameters():
        weight += 0.2 * torch.randn_like(weight)
    return part.eval().requires_grad_(False)


def eagle_config(target: LanguageModel) -> EagleConfig:
    return EagleConfig(
        layout="eagle",
        vocab_size=target.vocab_size,
        hidden_size=target.hidden_size,
        target_hidden_size=target.hidden_size,
        intermediate_size=24,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=8,
        rope={"rope_type": "default", "rope_theta": 10000.0},
    )


def eagle_cell(target: LanguageModel, opener: Opener | None = None) -> EagleCell:
    cell = EagleCell(eagle_config(target)).eval().requires_grad_(False)
    # the state begins as the feature, so the cell guesses that the text goes on as before
    cell.fc.weight[:, target.hidden_size :] += torch.eye(target.hidden_size)
    return cell


def falcon_cell(target: LanguageModel, opener: Opener | None = None) -> FalconCell:
    cell = FalconCell(FalconConfig(2, eagle_config(target)))
    for weight in cell.lstm.parameters():
        weight.data *= 4  # as initialised, an LSTM says nearly the same for every text
    return cell.eval().requires_grad_(False)


def tiny_adapter(target: LanguageModel, opener: Opener | None = None) -> Adapter:
    """An adapter behind the first layer. Untrained, it predicts what the early exit predicts."""
    config = AdapterConfig(target.hidden_size, 2, 1, 8, exit_layer=1)
    return Adapter(config).eval().requires_grad_(False)


def tiny_prompt_tokens(target: LanguageModel, opener: Opener | None = None) -> PromptTokens:
    """Two places of two vectors each, which are embeddings of tokens, so that they have an effect."""
    made = PromptTokens(2, 2, target.hidden_size)
    tokens = torch.arange(4) % target.embeddings
    made.embeddings.data.copy_(target.embed(tokens).view_as(made.embeddings))
    return made.requires_grad_(False)


def tiny_transfer_maps(target: LanguageModel, opener: Opener | None = None) -> TransferMaps:
    """Maps for two places, both from the last layer: the identity, and the identity with noise."""
    made = TransferMaps((target.layers - 1, target.layers - 1), target.hidden_size)
    for place, each in enumerate(made.maps):
        torch.nn.init.eye_(each.weight)
        each.weight.data += 0.2 * place * torch.randn_like(each.weight)
        torch.nn.init.zeros_(each.bias)
    return made.requires_grad_(False)


def _vocabulary(target: LanguageModel, opener: Opener) -> Vocabulary:
    return Vocabulary.counted(torch.randint(1000, (target.vocab_size,)))


def acceptance_head(width: int, layers: int = 1) -> AcceptanceHead:
    """A head for a draft whose state has this width; its chances vary with the text."""
    head = AcceptanceHead(layers, width)
    with torch.no_grad():
        for weight in head.parameters():
            weight.normal_(0, 0.1)
    return head.eval().requires_grad_(False)


def _acceptance_head(target: LanguageModel, opener: Opener) -> AcceptanceHead:
    return acceptance_head(target.hidden_size)


def _datastore(target: LanguageModel, opener: Opener) -> Datastore:
    return tiny_datastore(target.vocab_size)


def tiny_datastore(vocabulary: int) -> Datastore:
    """A text of 400 tokens in which short runs recur."""
    rng = np.random.default_rng(SEED)
    return Datastore(rng.integers(0, min(vocabulary, 12), 400))


def tiny_filter(places: int) -> UnmaskingFilter:
    """A filter that looks at all places: its chances vary with the block."""
    made = UnmaskingFilter(places, 4)
    for weight in made.parameters():
        weight.data.normal_(0, 2)
    return made.eval().requires_grad_(False)


def _unmasking_filter(target: LanguageModel, opener: Opener) -> UnmaskingFilter:
    return tiny_filter(_denoiser(target, opener).config.block_size - 1)


def tiny_diffusion_lm(target: LanguageModel, opener: Opener | None = None) -> DiffusionLM:
    config = DiffusionLMConfig(target.vocab_size, 16, 24, 2, 2, 1, 8, block_size=4)
    return DiffusionLM(config).eval().requires_grad_(False)


MAKERS = {
    "draft": _draft,
    "foreign_draft": _foreign_draft,
    "nested_draft": _nested_draft,
    "denoiser": _denoiser,
    "medusa_heads": _medusa_heads,
    "hydra_heads": _hydra_heads,
    "clover_heads": _clover_heads,
    "chimera_heads": _chimera_heads,
    "eagle": eagle_cell,
    "falcon": falcon_cell,
    "adapter": tiny_adapter,
    "prompt_tokens": tiny_prompt_tokens,
    "transfer_maps": tiny_transfer_maps,
    "vocabulary": _vocabulary,
    "acceptance_head": _acceptance_head,
    "datastore": _datastore,
    "unmasking_filter": _unmasking_filter,
    "diffusion_lm": tiny_diffusion_lm,
}

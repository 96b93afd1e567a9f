"""Passes through some of a model's layers, for drafters that are the target's own layers.

A pass may begin at any layer, end before the last one, and leave out the attention or the MLP of
some layers. Rows that were read up to a layer can go on from there later.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from engine.errors import UserError

ATTENTION, MLP = "attention", "mlp"


@dataclass(frozen=True)
class Layers:
    """The part of a model that a pass runs.

    first: the layer whose input the rows are; 0: the rows are tokens or embeddings. stop: the first
    layer that is not run; None: all are run, and the final norm. skipped: pairs of a layer and
    ATTENTION or MLP; a skipped sublayer adds nothing to the hidden states.
    """

    first: int = 0
    stop: int | None = None
    skipped: frozenset[tuple[int, str]] = frozenset()

    def runs(self, layer: int, sublayer: str) -> bool:
        last = self.stop is None or layer < self.stop
        return self.first <= layer and last and (layer, sublayer) not in self.skipped

    def taps(self, wanted: Sequence[int], count: int) -> tuple[int, ...]:
        """The ``wanted`` hidden states that such a pass through a model of ``count`` layers produces."""
        stop = count if self.stop is None else self.stop
        return tuple(index for index in wanted if self.first < index <= stop)


EVERY = Layers()

_STACKS = ("layers", "h")
_NORMS = ("norm", "ln_f", "final_layernorm", "final_layer_norm")
_SUBLAYERS = {ATTENTION: ("self_attn", "attn"), MLP: ("mlp",)}


def decoder_of(module: nn.Module) -> nn.Module:
    """The stack of layers below the head."""
    return module.base_model


def final_norm(module: nn.Module) -> nn.Module:
    """Raises UserError if the model's norm is not found."""
    return getattr(decoder_of(module), _named(decoder_of(module), _NORMS))


def stack_of(decoder: nn.Module) -> str:
    """The name of the decoder's list of layers. Raises UserError if the list is not found."""
    return _named(decoder, _STACKS)


_VIEWS: WeakKeyDictionary[nn.Module, dict[tuple, nn.Module]] = WeakKeyDictionary()
_MOST_VIEWS = 64  # per model; the oldest is dropped first


def view_of(module: nn.Module, layers: Layers, taps: tuple[int, ...] = ()) -> nn.Module:
    """A view of the module, with the same weights, whose decoder runs only these layers.

    taps: indices of hidden states (i: after i layers) that a pass records. Raises UserError for a
    model whose layers have other names.
    """
    views, key = _VIEWS.setdefault(module, {}), (layers, taps)
    if key not in views:
        if len(views) >= _MOST_VIEWS:
            del views[next(iter(views))]
        views[key] = _made(module, layers, taps)
    return views[key]


def _made(module: nn.Module, layers: Layers, taps: tuple[int, ...]) -> nn.Module:
    decoder = shallow(decoder_of(module))
    name = stack_of(decoder)
    stack = getattr(decoder, name)
    parts = [_layer_of(layer, index, layers) for index, layer in enumerate(stack)]
    for index in taps:
        parts[index - 1] = _Tapped(parts[index - 1], index)
    decoder._modules[name] = nn.ModuleList(parts)
    if layers.stop is not None:
        decoder._modules[_named(decoder, _NORMS)] = nn.Identity()
    whole = shallow(module)
    whole._modules[module.base_model_prefix] = decoder
    return whole


def _layer_of(layer: nn.Module, index: int, layers: Layers) -> nn.Module:
    kept = {sublayer: layers.runs(index, sublayer) for sublayer in _SUBLAYERS}
    if all(kept.values()):
        return layer
    if not any(kept.values()):
        return _PassedBy(layer, injects=index < layers.first)
    view = shallow(layer)
    for sublayer, runs in kept.items():
        if not runs:
            name = _named(layer, _SUBLAYERS[sublayer])
            experts = hasattr(getattr(layer, name), "router")
            silent = _NoAttention() if sublayer == ATTENTION else _NoMlp(experts)
            view._modules[name] = silent
    return view


class _PassedBy(nn.Module):
    """Stands in for a layer that is not run. Below the first layer of the pass it passes on the rows
    that the caller gives."""

    def __init__(self, layer: nn.Module, injects: bool) -> None:
        super().__init__()
        self._injects = injects
        self.attention_type = getattr(layer, "attention_type", None)

    def forward(self, hidden_states: Tensor, *_, injected: Tensor | None = None, **__) -> Tensor:
        return injected if self._injects and injected is not None else hidden_states


def passed_by(layer: nn.Module) -> nn.Module:
    """A stand-in for a layer that another module runs."""
    return _PassedBy(layer, injects=False)


class _Tapped(nn.Module):
    """A layer whose output rows are recorded."""

    def __init__(self, layer: nn.Module, index: int) -> None:
        super().__init__()
        self._layer, self._index = layer, index
        self.attention_type = getattr(layer, "attention_type", None)

    def forward(self, *rows, taps: dict[int, Tensor], **others) -> Tensor | tuple:
        found = self._layer(*rows, **others)
        taps[self._index] = found[0] if isinstance(found, tuple) else found
        return found


class _NoAttention(nn.Module):
    def forward(self, hidden_states: Tensor, *_, **__) -> tuple[Tensor, None]:
        return torch.zeros_like(hidden_states), None


class _NoMlp(nn.Module):
    """gives_scores: whether the MLP is a mixture of experts, which also returns scores."""

    def __init__(self, gives_scores: bool) -> None:
        super().__init__()
        self._gives_scores = gives_scores

    def forward(self, hidden_states: Tensor, *_, **__) -> Tensor | tuple[Tensor, None]:
        silent = torch.zeros_like(hidden_states)
        return (silent, None) if self._gives_scores else silent


def shallow(module: nn.Module) -> nn.Module:
    """A copy that shares parameters and submodules, and whose submodules can be replaced."""
    view = copy.copy(module)
    view._modules = dict(module._modules)
    return view


def _named(module: nn.Module, names: tuple[str, ...]) -> str:
    for name in names:
        if name in module._modules:
            return name
    raise UserError(
        f"{type(module).__name__} has no part named {' or '.join(names)}; "
        "drafting with single layers does not know this architecture."
    )


@dataclass(frozen=True)
class Passed:
    """The result of a pass of R rows through some layers.

    rows: [R, H] after the last of these layers, and after the final norm if the pass ran to the end;
    or logits [R, V] if the head was asked for. taps: hidden states [R, H] by index.
    """

    rows: Tensor
    taps: Mapping[int, Tensor]


def passed(
    module: nn.Module,
    given: Tensor,
    tokens: Tensor,
    positions: Tensor,
    mask,
    cache,
    layers: Layers,
    taps: tuple[int, ...] = (),
    head: bool = False,
) -> Passed:
    """Rows through some layers, and through the head if asked.

    given: token ids [R], or vectors [R, H] that enter at ``layers.first``. tokens: ids [R]; any
    ids if vectors are given. taps: indices of hidden states to return, each after a layer that is run.
    """
    inputs = {"input_ids": tokens[None]}
    if given.is_floating_point():
        if layers.first:
            inputs["injected"] = given[None]
        else:
            inputs = {"inputs_embeds": given[None]}
    view, found = view_of(module, layers, taps), {}
    output = (view if head else decoder_of(view))(
        **inputs,
        position_ids=positions[None],
        # transformers passes a 4-D mask through unchanged; the real mask is row_mask
        attention_mask=torch.ones(1, 1, 1, 1, dtype=torch.bool, device=tokens.device),
        past_key_values=cache,
        use_cache=True,
        row_mask=mask,
        **({"taps": found} if taps else {}),
    )
    rows = output.logits if head else output.last_hidden_state
    found = {index: states[0] for index, states in found.items()}
    last = module.config.get_text_config().num_hidden_layers
    if last in found:  # the hidden states after all layers are normed, as everywhere else
        found[last] = final_norm(module)(found[last])
    return Passed(rows[0], found)


def cost_share(module: nn.Module, layers: Layers) -> float:
    """The weights that such a pass reads, as a share of all that a whole pass reads."""
    sizes, output = _sizes(module)
    last = module.config.get_text_config().num_hidden_layers
    every = [(layer, part) for layer in range(last) for part in sizes]
    whole = output + sum(sizes[part] for _, part in every)
    run = output + sum(sizes[part] for layer, part in every if layers.runs(layer, part))
    return run / whole


def head_in_layers(module: nn.Module) -> float:
    """The weights of the head, in units of those of a layer."""
    sizes, output = _sizes(module)
    return output / sum(sizes.values())


def _sizes(module: nn.Module) -> tuple[dict[str, int], int]:
    """The weights of a layer's sublayers, and those of the head.

    Computed from the sizes in the config, assuming a gated MLP; all experts count as one.
    """
    config = module.config.get_text_config()
    width, heads = config.hidden_size, config.num_attention_heads
    head = getattr(config, "head_dim", None) or width // heads
    kv_heads = getattr(config, "num_key_value_heads", None) or heads
    inner = getattr(config, "intermediate_size", None) or 4 * width
    sizes = {ATTENTION: 2 * width * head * (heads + kv_heads), MLP: 3 * width * inner}
    return sizes, width * config.vocab_size

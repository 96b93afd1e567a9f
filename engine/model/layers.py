"""Passes through some of a model's layers, for drafters that run the target's own layers.

A pass may begin at any layer, end before the last layer, and skip the attention or the MLP of some layers. Rows that
were run up to a layer can go on from that layer later.
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

    first: the layer at which the rows enter; if it is 0, the rows are tokens or embeddings. stop: the first layer that
    is not run; None means that all later layers and the final norm are run. skipped: pairs of a layer and ATTENTION or
    MLP; a skipped sublayer adds nothing to the hidden states.
    """

    first: int = 0
    stop: int | None = None
    skipped: frozenset[tuple[int, str]] = frozenset()

    def runs(self, layer: int, sublayer: str) -> bool:
        last = self.stop is None or layer < self.stop
        return self.first <= layer and last and (layer, sublayer) not in self.skipped

    def taps(self, wanted: Sequence[int], count: int) -> tuple[int, ...]:
        """The indices of those ``wanted`` hidden states that a pass through these layers of a model of ``count`` layers
        computes. Index i is the state after i layers."""
        stop = count if self.stop is None else self.stop
        return tuple(index for index in wanted if self.first < index <= stop)


EVERY = Layers()

_STACKS = ("layers", "h")
_NORMS = ("norm", "ln_f", "final_layernorm", "final_layer_norm")
_SUBLAYERS = {ATTENTION: ("self_attn", "attn"), MLP: ("mlp",)}


def decoder_of(module: nn.Module) -> nn.Module:
    """The module's stack of layers, with embeddings and final norm but without the head."""
    return module.base_model


def final_norm(module: nn.Module) -> nn.Module:
    """The module's norm after the last layer. Raises UserError if it is not found."""
    return getattr(decoder_of(module), _named(decoder_of(module), _NORMS))


def stack_of(decoder: nn.Module) -> str:
    """The name of the decoder's list of layers. Raises UserError if the list is not found."""
    return _named(decoder, _STACKS)


_VIEWS: WeakKeyDictionary[nn.Module, dict[tuple, nn.Module]] = WeakKeyDictionary()
_MOST_VIEWS = 64  # per model; the oldest is dropped first


def view_of(module: nn.Module, layers: Layers, taps: tuple[int, ...] = ()) -> nn.Module:
    """A view of the module, with the same weights, whose decoder runs only these layers. Views are reused.

    taps: indices of the hidden states that a pass records; index i is the state after i layers. Raises UserError if the
    module's layers have unknown names.
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
    running = {sublayer: layers.runs(index, sublayer) for sublayer in _SUBLAYERS}
    if all(running.values()):
        return layer
    if not any(running.values()):
        return _PassedBy(layer, injects=index < layers.first)
    view = shallow(layer)
    for sublayer, runs in running.items():
        if not runs:
            name = _named(layer, _SUBLAYERS[sublayer])
            experts = hasattr(getattr(layer, name), "router")
            silent = _NoAttention() if sublayer == ATTENTION else _NoMlp(experts)
            view._modules[name] = silent
    return view


class _PassedBy(nn.Module):
    """Takes the place of a layer that is not run, and returns that layer's input. injects: whether it returns the
    pass's ``injected`` rows instead, as is needed for layers below the first layer of the pass."""

    def __init__(self, layer: nn.Module, injects: bool) -> None:
        super().__init__()
        self._injects = injects
        self.attention_type = getattr(layer, "attention_type", None)

    def forward(self, hidden_states: Tensor, *_, injected: Tensor | None = None, **__) -> Tensor:
        return injected if self._injects and injected is not None else hidden_states


def passed_by(layer: nn.Module) -> nn.Module:
    """A module that takes the place of a layer and returns its input, because another module runs the layer."""
    return _PassedBy(layer, injects=False)


class _Tapped(nn.Module):
    """A layer whose output rows are recorded in ``taps``, under this index."""

    def __init__(self, layer: nn.Module, index: int) -> None:
        super().__init__()
        self._layer, self._index = layer, index
        self.attention_type = getattr(layer, "attention_type", None)

    def forward(self, *rows, taps: dict[int, Tensor], **others) -> Tensor | tuple:
        output = self._layer(*rows, **others)
        taps[self._index] = output[0] if isinstance(output, tuple) else output
        return output


class _NoAttention(nn.Module):
    def forward(self, hidden_states: Tensor, *_, **__) -> tuple[Tensor, None]:
        return torch.zeros_like(hidden_states), None


class _NoMlp(nn.Module):
    """Takes the place of a skipped MLP, and returns zeros. gives_scores: whether the MLP is a mixture of experts, which
    also returns scores."""

    def __init__(self, gives_scores: bool) -> None:
        super().__init__()
        self._gives_scores = gives_scores

    def forward(self, hidden_states: Tensor, *_, **__) -> Tensor | tuple[Tensor, None]:
        silent = torch.zeros_like(hidden_states)
        return (silent, None) if self._gives_scores else silent


def shallow(module: nn.Module) -> nn.Module:
    """A copy of the module that shares its parameters and submodules. Submodules of the copy can be replaced without a
    change to the module."""
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

    rows: hidden states [R, H] after the last of these layers, and after the final norm if the pass ran to the end; or
    logits [R, V] if the pass included the head. taps: the recorded hidden states [R, H], by index.
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
    """Run R rows through some layers of the module.

    given: token ids [R], or vectors [R, H] that enter at ``layers.first``. tokens: ids [R]; any ids if ``given`` holds
    vectors. positions: [R]. taps: indices of the hidden states to record; index i is the state after i layers, and the
    pass must run layer i - 1. head: run the head too, and return logits.
    """
    inputs = {"input_ids": tokens[None]}
    if given.is_floating_point():
        if layers.first:
            inputs["injected"] = given[None]
        else:
            inputs = {"inputs_embeds": given[None]}
    view, recorded = view_of(module, layers, taps), {}
    output = (view if head else decoder_of(view))(
        **inputs,
        position_ids=positions[None],
        # transformers passes a 4-D mask through unchanged; the real mask is row_mask
        attention_mask=torch.ones(1, 1, 1, 1, dtype=torch.bool, device=tokens.device),
        past_key_values=cache,
        use_cache=True,
        row_mask=mask,
        **({"taps": recorded} if taps else {}),
    )
    rows = output.logits if head else output.last_hidden_state
    recorded = {index: states[0] for index, states in recorded.items()}
    last = module.config.get_text_config().num_hidden_layers
    if last in recorded:  # the hidden states after all layers are normed, as everywhere else
        recorded[last] = final_norm(module)(recorded[last])
    return Passed(rows[0], recorded)


def cost_share(module: nn.Module, layers: Layers) -> float:
    """The number of weights that a pass through these layers and the head reads, as a share of those that a whole pass
    reads."""
    sizes, output = _sizes(module)
    last = module.config.get_text_config().num_hidden_layers
    every = [(layer, part) for layer in range(last) for part in sizes]
    whole = output + sum(sizes[part] for _, part in every)
    run = output + sum(sizes[part] for layer, part in every if layers.runs(layer, part))
    return run / whole


def head_in_layers(module: nn.Module) -> float:
    """The number of the head's weights, divided by the number of one layer's weights."""
    sizes, output = _sizes(module)
    return output / sum(sizes.values())


def _sizes(module: nn.Module) -> tuple[dict[str, int], int]:
    """The number of weights of each sublayer of a layer, and of the head.

    They are computed from the sizes in the config, for a gated MLP; all experts of a layer count as one MLP.
    """
    config = module.config.get_text_config()
    width, heads = config.hidden_size, config.num_attention_heads
    head = getattr(config, "head_dim", None) or width // heads
    kv_heads = getattr(config, "num_key_value_heads", None) or heads
    inner = getattr(config, "intermediate_size", None) or 4 * width
    sizes = {ATTENTION: 2 * width * head * (heads + kv_heads), MLP: 3 * width * inner}
    return sizes, width * config.vocab_size

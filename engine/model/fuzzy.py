"""A model in which a group of neighbouring layers can be run on the same input, as if no layer waited for another.

Wu et al., EasySpec (2025): each layer of a group gets the input of the group's first layer, and the layers' additions
to that input are summed. On several devices the layers of a group run at the same time; the results are the same on one
device.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakKeyDictionary

from torch import Tensor, nn

from engine.errors import UserError
from engine.model.language_model import LanguageModel
from engine.model.layers import decoder_of, passed_by, shallow, stack_of
from engine.model.own_attention import ChainModel, MaskedModel
from engine.model.structure import structure_of

_FUZZY: WeakKeyDictionary[LanguageModel, dict[int, FuzzyModel]] = WeakKeyDictionary()


class FuzzyModel:
    """A model whose layers are divided into groups.

    model: the language model; its passes are exact except within ``together``. groups: the indices of each group's
    layers."""

    def __init__(self, whole: LanguageModel, size: int) -> None:
        """Group the layers of ``whole``, whose weights are shared. size: the most layers in a group. Raises UserError
        if the layers are not found, if the model has attention code of its own, or if its module cannot be copied."""
        refused = UserError(f"The layers of {whole.name} cannot be run side by side.")
        if isinstance(whole, MaskedModel | ChainModel):
            raise refused
        try:
            module = structure_of(whole.model)
        except TypeError as error:
            raise refused from error
        name = stack_of(decoder_of(module))
        layers = list(getattr(decoder_of(module), name))
        self.groups = groups_of(layers, size)
        self._grouped = [_Group([layers[index] for index in group]) for group in self.groups]
        parts = [passed_by(layer) for layer in layers]
        for group, module_of_group in zip(self.groups, self._grouped, strict=True):
            parts[group[0]] = module_of_group
        decoder = shallow(decoder_of(module))
        decoder._modules[name] = nn.ModuleList(parts)
        view = shallow(module)
        view._modules[module.base_model_prefix] = decoder
        self.model = whole.uncompiled(view)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Within this context, passes run the layers of each group on the same input."""
        for group in self._grouped:
            group.together = True
        try:
            yield
        finally:
            for group in self._grouped:
                group.together = False


def fuzzy(model: LanguageModel, size: int) -> FuzzyModel:
    """The ``FuzzyModel`` with groups of at most ``size`` layers of this model. It is built once per model and size, and
    then reused."""
    models_by_size = _FUZZY.setdefault(model, {})
    if size not in models_by_size:
        models_by_size[size] = FuzzyModel(model, size)
    return models_by_size[size]


def groups_of(layers: list[nn.Module], size: int) -> list[list[int]]:
    """The indices of the layers, in groups of at most ``size`` consecutive layers. A layer with another kind of
    attention than the group's first layer needs another mask, so it begins a new group."""
    groups: list[list[int]] = []
    for index, layer in enumerate(layers):
        kind = getattr(layer, "attention_type", None)
        last = groups[-1] if groups else []
        alike = last and getattr(layers[last[0]], "attention_type", None) == kind
        if alike and len(last) < size:
            last.append(index)
        else:
            groups.append([index])
    return groups


class _Group(nn.Module):
    def __init__(self, layers: list[nn.Module]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.attention_type = getattr(layers[0], "attention_type", None)
        self.together = False

    def forward(self, hidden_states: Tensor, *others, **named) -> Tensor:
        first_input = states = hidden_states
        for layer in self.layers:
            if self.together:
                states = states + (_rows(layer(first_input, *others, **named)) - first_input)
            else:
                states = _rows(layer(states, *others, **named))
        return states


def _rows(output: Tensor | tuple) -> Tensor:
    return output[0] if isinstance(output, tuple) else output

"""Trains the maps of hidden transfer: pseudo states join the frozen target's pass at their layers.

Wu et al., "Parallel Decoding via Hidden Transfer for Lossless Large Language Model Acceleration" (2024): the target is
its own teacher, because the pseudo states learn the distributions that the target gives on a text. The loss is that of
all probe rows (``engine.training.students.probes``).

Letters in shapes: S windows, T tokens of a window, A tokens that pseudo states follow, K pseudo states after each of
these tokens (the places), R pseudo states of a pass, H hidden size, V vocabulary.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.core.options import whole
from engine.errors import UserError
from engine.methods.hidden_transfer.part import TransferMaps, check_layers
from engine.model.layers import Layers, decoder_of, view_of
from engine.training.students.probes import ProbeStudent, added


class TransferStudent(ProbeStudent):
    key = "hidden_transfer"
    summary = "the maps of `hidden_transfer`, from states at a middle layer to pseudo states of coming tokens"
    options = (
        whole("places", 3, 1, 16).meaning("Tokens predicted beyond the target's own."),
        whole("layer", 0, 0, 255).meaning(
            "Layer at which the first place joins (0: the middle one)."
        ),
        whole("apart", 0, 0, 16).meaning("Layers from one place's to the next one's."),
        ProbeStudent.asked_option("pseudo states"),
    )

    def start(self) -> TransferMaps:
        count = self.config.num_hidden_layers
        first, apart = self.settings["layer"] or count // 2, self.settings["apart"]
        layers = [first + apart * place for place in range(self.settings["places"])]
        try:
            check_layers(layers, count)
        except ValueError as error:
            raise UserError(f"Such a set of transfer maps does not fit: {error}.") from None
        return TransferMaps.beginning(layers, self.config.hidden_size)

    def logits(self, part: TransferMaps, tokens: Tensor, asked: Sequence[int]) -> Tensor:
        with torch.no_grad():
            read = self.target(
                input_ids=tokens, use_cache=True, output_hidden_states=True, logits_to_keep=1
            )
        reading = _Reading(self.target, read.past_key_values, tokens, asked, part.places)
        rows, at = None, 0
        for place, layer in enumerate(part.layers):
            if rows is not None and layer > at:
                rows = reading.through(rows, Layers(at, layer))
            at = layer
            pseudo = part.maps[place](read.hidden_states[layer][:, asked])
            rows = pseudo if rows is None else torch.cat([rows, pseudo], 1)
        logits = reading.through(rows, Layers(first=at), head=True)
        return logits.unflatten(1, (part.places, len(asked))).transpose(1, 2)


class _Reading:
    """Runs pseudo states through the target's layers. The caller must have run the target over the windows, so that the
    keys and values of the windows' tokens are in ``cache``. The pseudo states are ordered by place: first those of
    place 0, one after each token whose position is in ``asked``, then those of place 1 after the same tokens, and so
    on. A pseudo state sees the text up to the token that it follows, itself, and the pseudo states of earlier places
    after the same token."""

    def __init__(self, target, cache, tokens: Tensor, asked: Sequence[int], places: int) -> None:
        self._target, self._cache, self._windows = target, cache, len(tokens)
        device, length, count = tokens.device, tokens.shape[1], len(asked)
        at = torch.tensor(asked, device=device)
        steps = torch.arange(places, device=device)
        self._places = (steps[:, None] + 1 + at).flatten()
        before = (torch.arange(length, device=device) <= at[:, None]).repeat(places, 1)
        own = torch.eye(count, dtype=torch.bool, device=device).repeat(places, places)
        earlier = (steps[:, None] >= steps).repeat_interleave(count, 0).repeat_interleave(count, 1)
        self._sees, self._length = torch.cat([before, own & earlier], -1), length

    def through(self, rows: Tensor, layers: Layers, head: bool = False) -> Tensor:
        """Run pseudo states [S, R, H] through these layers. rows: the states of all pseudo states of one or more
        places, from place 0 on. Returns their states [S, R, H] after the layers, or with ``head`` their logits [S, R,
        V]."""
        count, view = rows.shape[1], view_of(self._target, layers)
        sees = self._sees[:count, : self._length + count]
        output = (view if head else decoder_of(view))(
            input_ids=rows.new_zeros(rows.shape[:2], dtype=torch.long),
            injected=rows,
            attention_mask=added(sees, self._target.dtype).expand(self._windows, -1, -1, -1),
            position_ids=self._places[None, :count].expand(self._windows, -1),
            past_key_values=self._cache,
            use_cache=True,
        )
        return output.logits if head else output.last_hidden_state


STUDENT = TransferStudent

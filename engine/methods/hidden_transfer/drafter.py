"""Linear maps at a middle layer make pseudo states of coming tokens; the layers above finish them in the same pass.

Wu et al., "Parallel Decoding via Hidden Transfer for Lossless Large Language Model Acceleration" (2024). The map of
place k turns a token's hidden state at the map's layer into a pseudo state: an estimate of the state that the token k
places later will have at that layer. In the layers above, the pseudo states attend to the text and to one another, and
the target's head turns them into the laws of coming tokens. The likeliest paths through these laws are the draft. The
next pass verifies this draft, and makes new pseudo states.

The pseudo states are probe rows that join the pass at their layers (``engine.methods.hidden_transfer.part``). Beyond
the paper: pseudo states follow only the nodes at which the step is likeliest to end, not all nodes
(``engine.methods.shared.probing``).
"""

from engine.core.exhibits import Layer, Layers
from engine.methods.shared.own_layers import OwnLayersDrafter
from engine.methods.shared.probing import ProbedTreeDrafter


class HiddenTransferDrafter(ProbedTreeDrafter):
    key = "hidden_transfer"
    title = "Hidden transfer"
    summary = "Linear maps at a middle layer make pseudo states of coming tokens, for the layers above to finish."
    needs = {"hidden_transfer": "transfer_maps"}
    probes_are = "pseudo states"
    options = ProbedTreeDrafter.usual_options(probes_are)

    @classmethod
    def build(cls, settings, models):
        part = models.part("hidden_transfer")
        drafter = super().build(settings, models)
        nodes = drafter.settings["budget"] + settings["asked"] * len(part)
        OwnLayersDrafter.make_ready(models.target, sorted(set(part.layers)), nodes)
        return drafter

    def _shown(self, tree, laws):
        return [*super()._shown(tree, laws), *([self._stack()] if self._asked else [])]

    def _stack(self) -> Layers:
        layers = [Layer("run") for _ in range(self.target.layers)]
        for layer in set(self.part.layers):
            places = [str(at + 1) for at, own in enumerate(self.part.layers) if own == layer]
            label = f"pseudo states of place {', '.join(places)} are made here"
            layers[layer - 1] = Layer("adapter", label=label)
        note = "The layers above read tokens and pseudo states side by side."
        return Layers("Where pseudo states join the pass", layers, note=note)

"""Several heads on one hidden state of the target, each for one later token; their choices form a fixed tree.

Cai et al., Medusa: Simple LLM Inference Acceleration Framework with Multiple Decoding Heads (2024). No head knows the
choices of another, so the tree puts the best choices of a head below those of the head before it. The heads' measured
accuracies decide how many choices of each head are used.
"""

from engine.methods.shared.heads import HeadsDrafter


class MedusaDrafter(HeadsDrafter):
    key = "medusa"
    title = "Medusa heads"
    summary = "Heads on the target's last state guess the next tokens, each blind to the others."
    needs = {"medusa": "medusa_heads"}
    note = "All heads read the same state. No head knows which token another head chose."

    def _keep(self, features):
        super()._keep(features)
        self._said = []

    def _after(self, head, paths, count):
        if not self._said:
            widest = max(map(len, self.heads.accuracies))
            project = self.target.head if self.heads.shares_head else self.heads.project
            self._said = self._choices(self.heads(self._state), project, widest)
        return [self._said[head]] * len(paths)

    def _spoken(self, kept):
        return [law for law, _ in self._said[self._first :]] if len(kept.tree) else []

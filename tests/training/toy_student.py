"""A student of one matrix, from the last state to the token after the next; it drafts one token."""

import json

import torch
from safetensors.torch import save_file

from engine.training.distill import divergence_loss
from engine.training.student import Student


class Matrix(Student):
    key, summary = "toy", "one matrix"

    @property
    def feature_layers(self):
        return (self.config.num_hidden_layers,)

    def start(self):
        return torch.nn.Linear(self.config.hidden_size, self.config.hidden_size, bias=False)

    def logits(self, part, lesson):
        return self.target.lm_head(part(lesson.features[:, :-2]))

    def loss(self, part, lesson):
        keep = lesson.counted[:, 2:].float().flatten()
        wanted = lesson.logits[:, 1:-1].flatten(0, 1)
        return divergence_loss(self.logits(part, lesson).flatten(0, 1), wanted, keep)

    def accepted(self, part, lesson):
        right = self.logits(part, lesson).argmax(-1) == lesson.tokens[:, 2:]
        return torch.nn.functional.pad(right.long(), (1, 1))

    def save(self, part, folder, about):
        folder.mkdir(parents=True, exist_ok=True)
        save_file(part.state_dict(), folder / "model.safetensors")
        (folder / "config.json").write_text(json.dumps(dict(about)))


STUDENT = Matrix

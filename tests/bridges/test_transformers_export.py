"""The exported lines run in transformers, draft as many tokens as they say, and leave the text as it is."""

from dataclasses import replace

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from engine.bridges.exporting import export
from presets import family
from tests.bridges.settings import setting

COUNT = 48
PROMPT = "Once upon a time there was a dog. The dog had a ball. Once upon a time there was a dog."


@pytest.fixture(scope="module")
def target():
    return AutoModelForCausalLM.from_pretrained(family().target, dtype=torch.float32)


@pytest.fixture(scope="module")
def inputs():
    found = AutoTokenizer.from_pretrained(family().target)(PROMPT, return_tensors="pt")
    return {**found, "max_new_tokens": COUNT, "do_sample": False, "pad_token_id": 0}


@pytest.fixture(scope="module")
def plain(target, inputs):
    """Return the text that the target writes alone."""
    return target.generate(**inputs)[0].tolist()


class Counted:
    """The target, which notes the number of rows of each pass after the first, and the text that was written."""

    def __init__(self, target) -> None:
        self.model, self.rows = target, []

    def generate(self, **arguments):
        def note(module, args, kwargs):
            self.rows.append(kwargs["input_ids"].shape[1])

        hook = self.model.register_forward_pre_hook(note, with_kwargs=True)
        try:
            self.text = self.model.generate(**arguments)[0].tolist()
        finally:
            hook.remove()


@pytest.mark.parametrize("size", [2, 5])
@pytest.mark.parametrize("drafter", ["chain", "prompt_lookup"])
def test_the_exported_lines_draft_so_many_tokens(drafter, size, target, inputs, plain):
    given = setting(drafter, size, options={"max_ngram": 3} if drafter != "chain" else {})
    given = replace(given, checkpoint=family().parts["draft"])
    counted = Counted(target)
    names = {"target": counted, "inputs": inputs, "AutoModelForCausalLM": AutoModelForCausalLM}
    exec(export(given, "transformers").text, names)  # noqa: S102  (as who copies the lines would)
    assert counted.text == plain
    assert max(counted.rows[1:]) == size + 1, "the drafted tokens and the one before them"
    assert len(counted.rows) < COUNT

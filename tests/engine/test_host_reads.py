"""How often the host waits for a number from the device in an unrecorded step."""

import pytest
from torch.overrides import TorchFunctionMode

from engine.core import sampling as sampled
from engine.core.chance import JudgeChance
from engine.core.decode import decode
from engine.core.text import TextRequest
from engine.fast.gpu import verdict
from engine.rules import verifier
from tests.drafters.writing import built
from tests.engine.unrecorded import PROMPT, RULES

READING = {"tolist", "item", "cpu", "numpy", "__int__", "__float__", "__bool__", "__index__"}


class Reads(TorchFunctionMode):
    """Counts the calls that would wait for a device if the tensors were on one."""

    def __init__(self) -> None:
        super().__init__()
        self.count, self.looking = 0, True

    def __torch_function__(self, function, types, arguments=(), named=None):
        self.count += self.looking and getattr(function, "__name__", "") in READING
        return function(*arguments, **(named or {}))

    def without(self, function):
        """The function without its reads: on a GPU it is a kernel, or its numbers are never there."""

        def call(*arguments, **named):
            self.looking = False
            try:
                return function(*arguments, **named)
            finally:
                self.looking = True

        return call


@pytest.mark.parametrize("key", ["none", "chain", "prompt_lookup", "dflash"])
@pytest.mark.parametrize(("rule", "sampling"), RULES)
def test_the_verdict_is_all_it_waits_for(
    key, rule, sampling, static_models, static_blocks, monkeypatch
):
    reads = Reads()
    for owner, name in ((verdict, "verify_tree"), (JudgeChance, "toss"), (sampled, "_nucleus")):
        monkeypatch.setattr(owner, name, reads.without(getattr(owner, name)))
    request = TextRequest(built(key, static_models), verifier(rule), sampling, PROMPT, 30)
    with reads:
        for _ in decode(static_models.target, request, recorded=False):
            assert reads.count == 1
            reads.count = 0

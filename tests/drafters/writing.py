"""Texts written by one drafter on small models, for tests of its proposals."""

from transformers import AutoModel

from engine.core.chance import DraftChance
from engine.core.drafter import Drafter, Start
from engine.core.options import resolve
from engine.core.sampling import Sampling
from engine.core.text import TextRequest
from engine.loops import run_loop
from engine.methods import drafter
from engine.rules import verifier


def built(cls, models, **options):
    """Return an instance of a drafter. cls: its class or key. The options are those that show it at work on tiny
    models, changed by ``options``."""
    cls = drafter(cls) if isinstance(cls, str) else cls
    return cls.build(resolve(cls.key, cls.options, {**cls.trial, **options}), models)


def usual(cls, models, **options):
    """Return an instance of a drafter with its usual options, changed by ``options``. cls: its class or key."""
    cls = drafter(cls) if isinstance(cls, str) else cls
    return cls.build(resolve(cls.key, cls.options, options), models)


def with_heads(cls, models, **options):
    """Return an instance of a drafter as ``built`` makes it, begun where the target has read [3, 5] and written 7."""
    made = built(cls, models, **options)
    features = models.target.session(32, made.feature_layers).prefill([3, 5])
    made.begin(Start([3, 5, 7], Sampling(), DraftChance(0), features))
    return made


def steps_of(*arguments, **named):
    """Return the steps of a text; see ``begun`` for the arguments."""
    return list(begun(*arguments, **named))


def begun(
    models,
    made,
    prompt,
    count=24,
    sampling=None,
    rule=None,
    memory=None,
    constraint=None,
    **options,
):
    """Begin a text that is written step by step, as its steps are requested. made: a drafter, or a class or key for
    ``built``. rule: a rule or its key; by default an exact one."""
    sampling = sampling or Sampling()
    rule = rule or ("greedy" if sampling.greedy else "rejection")
    rule = verifier(rule) if isinstance(rule, str) else rule
    made = made if isinstance(made, Drafter) else built(made, models, **options)
    more = {"memory": memory, "constraint": constraint}
    return run_loop(models.target, TextRequest(made, rule, sampling, prompt, count, **more))


def text_of(steps):
    return [token for step in steps for token in step.output]


def drafted(steps):
    """Return everything that was drafted, step by step, with its places and sources."""
    return [(step.tree.tokens, step.tree.parents, step.tree.sources) for step in steps]


def roots(prompt, steps):
    """Return the root token of each step's tree."""
    return [prompt[-1], *(step.output[-1] for step in steps[:-1])]


def parameters_made(monkeypatch):
    """Return a list that collects every weight of the decoders made from now on."""
    made, from_config = [], AutoModel.from_config

    def call(*arguments, **named):
        found = from_config(*arguments, **named)
        made.extend(found.parameters())
        return found

    monkeypatch.setattr(AutoModel, "from_config", call)
    return made

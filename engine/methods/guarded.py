"""Guards methods from outside this repository: a mistake in such a drafter ends its run with one sentence, never the
process."""

from collections.abc import Mapping
from pathlib import Path
from typing import get_args

from engine.bounded.time_limit import within
from engine.core.drafter import Drafter, Loop
from engine.core.options import Option, resolve
from engine.core.proposal import Proposal
from engine.core.sampling import Sampling
from engine.core.tree import DraftTree
from engine.errors import UserError
from engine.finding import classes, outside_module
from engine.parts.kinds import kinds
from engine.printable import one_line
from engine.rules import verifiers


def outside_drafter(folder: Path, known: Mapping[str, type[Drafter]]) -> type[Drafter]:
    """Return the drafter class in the folder of an outside method, wrapped by ``guarded``.

    known: the drafters whose keys are already in use. Raises UserError, one sentence, if the folder has no usable
    drafter.
    """
    name, module = folder.name, outside_module(folder, "drafter")
    drafters = classes(module, Drafter)
    if len(drafters) != 1:
        many = "no class" if not drafters else f"{len(drafters)} classes"
        raise UserError(
            f"drafter.py of the method {name} must have one subclass of Drafter with a key; it has {many}."
        )
    (cls,) = drafters
    if not isinstance(cls.key, str) or not cls.key.isidentifier():
        raise UserError(
            f"The key of the method {name} must be a name of letters, digits and underscores."
        )
    if cls.key in known:
        raise UserError(
            f"The method {name} has the key {cls.key!r}, which another method has already."
        )
    lacking = set(cls.__abstractmethods__)
    if getattr(cls.kinds, "__func__", None) is Drafter.kinds.__func__ and not hasattr(
        cls, "draw_kinds"
    ):
        lacking.add("kinds")
    if lacking:
        raise UserError(f"The drafter of the method {name} lacks {', '.join(sorted(lacking))}.")
    guarded_cls = guarded(cls)
    within(name, "what it declares", lambda: _check_declared(name, guarded_cls))
    return guarded_cls


def _check_declared(name: str, cls: type[Drafter]) -> None:
    """Check the class attributes that the page and the lists of methods read. Raises UserError for the first invalid
    one."""
    for sampling in (Sampling(), Sampling(1.0)):
        if not all(isinstance(kind, str) for kind in cls.kinds(sampling)):
            raise UserError(f"The kinds of the method {name} must be names of kinds of draw.")
    for text in ("title", "family", "summary"):
        if not isinstance(getattr(cls, text), str) or not getattr(cls, text).strip():
            raise UserError(f"The {text} of the method {name} must be a text.")
    if not all(isinstance(option, Option) for option in cls.options):
        raise UserError(f"The options of the method {name} must each be an Option.")
    resolve(cls.key, cls.options, {**cls.trial})
    for kind in dict(cls.needs).values():
        if kind not in kinds():
            raise UserError(
                f"The method {name} needs a part of the kind {kind!r}, which does not exist."
            )
    for rule in (cls.default_verifier, cls.default_greedy_verifier):
        if rule not in verifiers():
            raise UserError(f"The method {name} names the rule {rule!r}, which does not exist.")
    if cls.loop not in get_args(Loop):
        raise UserError(f"The method {name} names the loop {cls.loop!r}, which does not exist.")


def guarded(cls: type[Drafter]) -> type[Drafter]:
    """Return a subclass of this drafter that limits the time of its calls and checks what ``build`` and ``propose``
    return."""
    about = (cls.__doc__ or cls.key).strip().split("\n")[0]
    defaults = {"title": cls.key, "family": "tree", "summary": about}
    missing = {name: value for name, value in defaults.items() if not hasattr(cls, name)}

    class Guarded(cls):
        yours = True

        @classmethod
        def build(inner, settings, models):
            own = within(cls.key, "build", lambda: super(Guarded, inner).build(settings, models))
            if not isinstance(own, Guarded):
                raise UserError(
                    f"build of the method {cls.key} must return cls(...), not another object."
                )
            own._tokens = models.target.embeddings
            return own

        def begin(self, start):
            within(cls.key, "begin", lambda: super(Guarded, self).begin(start))

        def propose(self, context, max_depth):
            def proposed() -> DraftTree | Proposal:
                product = super(Guarded, self).propose(list(context), max_depth)
                tree = Proposal.of(product).tree
                if not isinstance(tree, DraftTree):
                    defaults = one_line(type(tree).__name__)
                    raise UserError(f"The method {cls.key} proposed {defaults}, not a DraftTree.")
                wrong = [token for token in tree.tokens if not 0 <= token < self._tokens]
                if wrong:
                    raise UserError(
                        f"The method {cls.key} drafted the token {wrong[0]}, which the target does not have."
                    )
                return product

            return within(cls.key, "propose", proposed)

        def observe(self, kept):
            within(cls.key, "observe", lambda: super(Guarded, self).observe(kept))

        def device_twin(self):
            return self

    Guarded.__name__, Guarded.__qualname__ = cls.__name__, cls.__qualname__
    Guarded.__module__, Guarded.__doc__ = cls.__module__, cls.__doc__
    for name, value in missing.items():
        setattr(Guarded, name, value)
    return Guarded

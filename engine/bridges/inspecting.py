"""Inspects a drafter's checkpoint: its kind, whether it fits a target, and every trap by name (``python -m engine
inspect``)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from engine.bridges.checkpoint_files import Described, described
from engine.bridges.drafter_fit import READING, fit
from engine.bridges.drafter_kinds import KINDS, kind_of
from engine.bridges.drafter_traps import Trap, traps
from engine.parts.eight_bit import SCALE

FIT = {
    True: "By its description it fits the target",
    False: "It does not fit the target",
    None: "Its description does not tell whether it fits the target",
}
CHAINS_ONLY = ("vLLM", "llama.cpp")


@dataclass(frozen=True)
class Inspection:
    """The report on a checkpoint.
    kind: a key of ``KINDS``. facts: sentences. traps: those that make the checkpoint unusable (``wrong``) first.
    target: the target's name; "" without a target. fits: whether the drafter fits the target; None without a target,
    and for a kind of drafter whose files do not say."""

    name: str
    kind: str
    facts: tuple[str, ...]
    traps: tuple[Trap, ...]
    target: str = ""

    @property
    def wrong(self) -> bool:
        return any(trap.wrong for trap in self.traps)

    @property
    def fits(self) -> bool | None:
        decidable = self.target and (self.wrong or self.kind in (*READING, "causal"))
        return not self.wrong if decidable else None

    def lines(self) -> list[str]:
        """Sentences for people: the checkpoint's kind, facts, whether it fits the target, then the traps."""
        sentences = [
            f"{self.name} is {KINDS[self.kind].title}. {KINDS[self.kind].what}",
            *self.facts,
        ]
        if self.target:
            sentences.append(f"{FIT[self.fits]} {self.target}.")
        return [*sentences, *(f"{trap.name}: {trap.sentence}" for trap in self.traps)]


def inspect_drafter(checkpoint: str, target: str | None = None) -> Inspection:
    """Inspect a drafter. checkpoint, target: folders or Hub names. Raises UserError, one sentence, if either cannot be
    read."""
    files = described(checkpoint)
    beside = None if target is None else described(target)
    return inspection_of(files, beside)


def inspection_of(files: Described, target: Described | None = None) -> Inspection:
    kind = kind_of(files)
    all_traps = list(traps(files, kind))
    if target is not None:
        all_traps += fit(files, kind, target)
    all_traps.sort(key=lambda trap: not trap.wrong)
    name = "" if target is None else target.name
    return Inspection(files.name, kind, tuple(_facts(files, kind)), tuple(all_traps), name)


def _facts(files: Described, kind: str) -> list[str]:
    kind_facts = KINDS[kind]
    facts = []
    if files.shapes:
        count = sum(
            math.prod(shape) for key, shape in files.shapes.items() if not key.endswith(SCALE)
        )
        facts.append(f"It has {count:,} parameters in {len(files.shapes):,} tensors.")
    if kind_facts.engines:
        uses = ", ".join(f"{engine} ({how})" for engine, how in kind_facts.engines.items())
        facts.append(f"Known to take it: {uses}.")
    facts.append(
        f"Draftscope opens it with {kind_facts.here}."
        if kind_facts.here
        else "Draftscope does not draft with it."
    )
    chains = [engine for engine in CHAINS_ONLY if engine in kind_facts.engines]
    if kind_facts.tree and chains:
        subject = " and ".join(chains) + (" draft" if len(chains) > 1 else " drafts")
        facts.append(f"Draftscope drafts a tree with it; {subject} a chain only.")
    if files.tokenizer_digest:
        facts.append(
            f"Its tokenizer has {len(files.tokens or {}):,} tokens (digest {files.tokenizer_digest})."
        )
    return facts

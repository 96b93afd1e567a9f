"""Says of a drafter's checkpoint which kind it is, whether it fits a target, and every trap by name: ``python -m
engine inspect``."""

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
    """kind: a key of ``KINDS``. target: its name, "" if none was named. fits: None without a target, and for a kind whose description
    does not tell. facts: sentences. traps: what is wrong first."""

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
        told = self.target and (self.wrong or self.kind in (*READING, "causal"))
        return not self.wrong if told else None

    def lines(self) -> list[str]:
        """Sentences for people: the checkpoint's kind, whether it fits, then the traps."""
        told = [f"{self.name} is {KINDS[self.kind].title}. {KINDS[self.kind].what}", *self.facts]
        if self.target:
            told.append(f"{FIT[self.fits]} {self.target}.")
        return [*told, *(f"{trap.name}: {trap.sentence}" for trap in self.traps)]


def inspect_drafter(checkpoint: str, target: str | None = None) -> Inspection:
    """checkpoint, target: folders, or names on the Hub. Raises UserError, one sentence, for what cannot be looked at."""
    files = described(checkpoint)
    beside = None if target is None else described(target)
    return inspection_of(files, beside)


def inspection_of(files: Described, target: Described | None = None) -> Inspection:
    kind = kind_of(files)
    found = list(traps(files, kind))
    if target is not None:
        found += fit(files, kind, target)
    found.sort(key=lambda trap: not trap.wrong)
    name = "" if target is None else target.name
    return Inspection(files.name, kind, tuple(_facts(files, kind)), tuple(found), name)


def _facts(files: Described, kind: str) -> list[str]:
    told = KINDS[kind]
    facts = []
    if files.shapes:
        count = sum(
            math.prod(shape) for key, shape in files.shapes.items() if not key.endswith(SCALE)
        )
        facts.append(f"It has {count:,} parameters in {len(files.shapes):,} tensors.")
    if told.engines:
        taken = ", ".join(f"{engine} ({how})" for engine, how in told.engines.items())
        facts.append(f"Known to take it: {taken}.")
    facts.append(
        f"Draftscope opens it with {told.here}."
        if told.here
        else "Draftscope does not draft with it."
    )
    chains = [engine for engine in CHAINS_ONLY if engine in told.engines]
    if told.tree and chains:
        others = " and ".join(chains) + (" draft" if len(chains) > 1 else " drafts")
        facts.append(f"Draftscope drafts a tree with it; {others} a chain only.")
    if files.tokenizer_digest:
        facts.append(
            f"Its tokenizer has {len(files.tokens or {}):,} tokens (digest {files.tokenizer_digest})."
        )
    return facts

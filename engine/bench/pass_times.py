"""Compares the time of a draft pass over a part of the cache with that of a pass over all of it, and computes the gain.

A selector is a method that chooses the part of the KV cache that a draft pass reads. The target passes over several
texts in one pass if it can, and over one text after the other if not. Draft passes over several texts are run one after
the other. Passes of different kinds take turns, so that a busy moment slows all of them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from time import perf_counter

from engine.batch.branches import Branches
from engine.batch.together import decode_together, sessions_of
from engine.bench.contestants import Ours, wait
from engine.core.chance import Chance
from engine.core.drafter import Start
from engine.core.sampling import Sampling
from engine.core.seen import Draft
from engine.core.step import Step
from engine.core.threads import torch_threads
from engine.core.tree import DraftTree
from engine.methods.shared.part_of_cache import CachePartDrafter
from engine.model.session import Session
from engine.parts.loading import Models

ROUNDS = 5
LENGTH, LONGEST = 4, 16  # tokens: of the draft that is timed; of the longest draft considered


@dataclass(frozen=True)
class Passes:
    """The times of passes over all texts, in milliseconds. whole: a target pass over one row of each text. check: a
    target pass over a root and LENGTH tokens of each text. choose: the time in which the selector chooses a part of the
    cache, before a draft. draft: draft passes over one row of each text."""

    whole: float
    check: float
    choose: float
    draft: float

    def gain(self, kept: float) -> float:
        """The speed with the best draft length, divided by that of plain decoding. kept: the probability that a drafted
        token is accepted."""
        row = (self.check - self.whole) / LENGTH
        return max(
            sum(kept**place for place in range(count + 1))
            * self.whole
            / (self.whole + count * (row + self.draft) + (self.choose if count else 0.0))
            for count in range(LONGEST + 1)
        )


def times(ours: Ours, session: Session, text: Sequence[int], texts: int) -> Passes:
    """The times of passes over ``texts`` copies of a text. ours: a contestant whose drafter reads a part of the cache.
    session: a session that holds all tokens of the text but its last one."""
    target, chain = ours.models.target, [*text[-1:], *text[-1 - LENGTH : -1]]
    joint = sessions_of(target, len(text) + LENGTH + 1, texts, (), own=True)
    copies = [joint.open(place, ()) for place in range(texts)]
    for copy in copies:
        copy.take_over(session, len(text) - 1)
    drafters = [_begun(ours, text, copy) for copy in copies]

    def looked(rows: int) -> Callable[[], object]:
        tree = DraftTree()
        tree.chain(chain[1:rows], "")
        draft = Draft(chain[0], tree, len(text))
        return lambda: joint.look_at(dict.fromkeys(range(texts), draft))

    tried = {
        "whole": looked(1),
        "check": looked(1 + LENGTH),
        "choose": lambda: [drafter.turn_to(text) for drafter in drafters],
        "draft": lambda: [drafter.read(text[-1:]) for drafter in drafters],
    }
    return Passes(**_medians(tried, copies))


def _medians(tried: Mapping[str, Callable[[], object]], sessions: Sequence[Session]) -> dict:
    """The median milliseconds of each function in ``tried``. Each function is called twice in a row, and only the
    second call is timed: a compiled graph prepares itself anew after a change of sizes, which happens once per text or
    per draft. sessions: the sessions that the functions use; their scratch rows are dropped after each call."""
    times_by_name: dict[str, list[float]] = {name: [] for name in tried}
    for _ in range(ROUNDS):
        for name, run in tried.items():
            for _ in range(2):
                began = perf_counter()
                run()
                wait(sessions[0].model.device)
                spent = 1000 * (perf_counter() - began)
                for session in sessions:
                    session.drop()
            times_by_name[name].append(spent)
    return {name: median(milliseconds) for name, milliseconds in times_by_name.items()}


def below_one_prompt(
    models: Models, session: Session, text: Sequence[int], texts: int
) -> list[Mapping]:
    """The milliseconds of a pass over one row of each of several texts with the same prompt.

    The pass is measured with one session per text, and with one session that all texts share. The result also has the
    megabytes of the prompt's keys and values. It is a list of one row, or an empty list if the target cannot share a
    prompt. session: a session that holds all tokens of the prompt but its last one.
    """
    target, length = models.target, len(text) - 1
    ways = {
        "apart": sessions_of(target, length + 2, texts, (), own=True),
        "shared": sessions_of(target, length + 2, texts, (), length),
    }
    if not isinstance(ways["shared"], Branches):
        return []
    draft, opened = Draft(text[-1], DraftTree(), length), []
    for sessions in ways.values():
        for place in range(texts):
            opened.append(sessions.open(place, ()))
            opened[-1].take_over(session, length)
    looked = {
        name: partial(sessions.look_at, dict.fromkeys(range(texts), draft))
        for name, sessions in ways.items()
    }
    figures, held = _medians(looked, opened), target.kv_bytes(length)
    figures |= {"ratio": figures["apart"] / figures["shared"]}
    return [{"length": len(text), "texts": texts} | figures | {"mb": held / 1e6}]


def _begun(ours: Ours, text: Sequence[int], session: Session) -> CachePartDrafter:
    drafter = ours.request(text, 1).drafter
    drafter.begin(Start(text, Sampling(), Chance.of(0).drafting, target=session))
    drafter.turn_to(text)
    return drafter


def together(
    contestants: Sequence[Ours], prompts: Sequence[Sequence[int]], tokens: int
) -> Iterator[Mapping]:
    """Let each contestant write all of these texts at once, and yield a row for each. ``speed`` is in tokens per
    second, without the time of reading prompts. ``equal`` is the number of texts that equal those of the first
    contestant, which is plain decoding."""
    usual: list[list[int]] | None = None
    for ours in contestants:
        requests = [ours.request(prompt, tokens) for prompt in prompts]
        written: list[list[int]] = [[] for _ in prompts]
        spent = 0.0
        target = ours.models.target
        with torch_threads(target.torch_threads):
            for index, step in decode_together(target, requests, recorded=False):
                written[index] += step.output
                spent += _own(step)
        usual = usual or written
        yield {
            "contestant": ours.name,
            "speed": 1000 * sum(map(len, written)) / spent,
            "equal": sum(map(list.__eq__, written, usual)),
        }


def _own(step: Step) -> float:
    """The milliseconds of a step, without those for reading the prompt."""
    return sum(step.milliseconds.values())

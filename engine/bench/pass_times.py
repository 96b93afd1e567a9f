"""The time of a draft pass over a part of the cache, compared with a pass over all of it, and the gain for many
texts.

A pass over several texts is made as the target makes it: in one piece where it can, else one after the other. Draft passes are made
one after the other. Passes of different kinds take turns, so that a busy moment slows all of them.
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
LENGTH, LONGEST = 4, 16  # tokens of the draft that is timed; of the longest that is reckoned with


@dataclass(frozen=True)
class Passes:
    """Milliseconds. whole: of a pass over one row of each text. check: over a root and LENGTH tokens. choose: of what a selector does
    before a draft. draft: of a draft pass over one row; both of all texts."""

    whole: float
    check: float
    choose: float
    draft: float

    def gain(self, kept: float) -> float:
        """How many times as fast as plain decoding the best length is, where so large a share of the drafted tokens is kept."""
        row = (self.check - self.whole) / LENGTH
        return max(
            sum(kept**place for place in range(count + 1))
            * self.whole
            / (self.whole + count * (row + self.draft) + (self.choose if count else 0.0))
            for count in range(LONGEST + 1)
        )


def times(ours: Ours, session: Session, text: Sequence[int], texts: int) -> Passes:
    """Times of the passes over ``texts`` copies of a text. ours: a drafter that reads a part of the cache. session: has read the
    text but for the last token."""
    target, chain = ours.models.target, [*text[-1:], *text[-1 - LENGTH : -1]]
    joint = sessions_of(target, len(text) + LENGTH + 1, texts, ())
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
        "choose": lambda: [each.turn_to(text) for each in drafters],
        "draft": lambda: [each.read(text[-1:]) for each in drafters],
    }
    return Passes(**_medians(tried, copies))


def _medians(tried: Mapping[str, Callable[[], object]], sessions: Sequence[Session]) -> dict:
    """Milliseconds of each call. It is made twice in a row, and the second is timed: where sizes have changed, a compiled graph prepares
    itself anew, which happens once a text or once a draft. sessions: forget what was read."""
    found: dict[str, list[float]] = {name: [] for name in tried}
    for _ in range(ROUNDS):
        for name, run in tried.items():
            for _ in range(2):
                began = perf_counter()
                run()
                wait(sessions[0].model.device)
                spent = 1000 * (perf_counter() - began)
                for session in sessions:
                    session.drop()
            found[name].append(spent)
    return {name: median(taken) for name, taken in found.items()}


def below_one_prompt(
    models: Models, session: Session, text: Sequence[int], texts: int
) -> list[Mapping]:
    """Milliseconds of a pass over a row of each of several texts with one prompt, in sessions of their own and in one session; and the
    megabytes of the prompt's keys and values. Nothing where the target shares no prompts. session: has read all of the text but its last
    token."""
    target, length = models.target, len(text) - 1
    ways = {
        "apart": sessions_of(target, length + 2, texts, ()),
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
    told, held = _medians(looked, opened), target.kv_bytes(length)
    told |= {"ratio": told["apart"] / told["shared"]}
    return [{"length": len(text), "texts": texts} | told | {"mb": held / 1e6}]


def _begun(ours: Ours, text: Sequence[int], session: Session) -> CachePartDrafter:
    drafter = ours.request(text, 1).drafter
    drafter.begin(Start(text, Sampling(), Chance.of(0).drafting, target=session))
    drafter.turn_to(text)
    return drafter


def together(
    contestants: Sequence[Ours], prompts: Sequence[Sequence[int]], tokens: int
) -> Iterator[Mapping]:
    """For each contestant, of whom plain decoding is the first: the speed of these texts, written at once, their prompts left out of the
    time, and how many texts are those of plain decoding."""
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
    """Milliseconds of a step, without those for the prompt."""
    return sum(step.milliseconds.values())

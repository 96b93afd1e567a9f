"""Writes an unrecorded text whose draft trees are judged on the target's device, within the target's pass if
possible."""

from dataclasses import replace

from engine.core.attempt import Attempt
from engine.core.seen import Seen
from engine.core.text import Text, TextRequest, text_of
from engine.fast.gpu.judge import DeviceJudge, knows
from engine.fast.gpu.question import JudgingKey, QuestionedDraft
from engine.fast.gpu.static_model import StaticModel


class DeviceText(Text):
    """A ``Text`` whose trees are judged on the device, and whose drafts may stay on the device until then."""

    def __init__(self, target: StaticModel, request: TextRequest) -> None:
        super().__init__(target, request, recorded=False)
        self.drafter = request.drafter.device_twin()
        kinds = self.drafter.kinds(self.sampling)
        key = JudgingKey(request.verifier.key, replace(self.sampling, seed=0), kinds)
        self._judge = DeviceJudge(key, self.sampling.seed, self.chance.judging, target)

    def draft(self) -> Attempt:
        attempt = super().draft()
        draft = attempt.draft
        question = self._judge.ask(draft.tree, draft.position)
        return replace(attempt, draft=QuestionedDraft(**vars(draft), question=question))

    def judge(self, attempt: Attempt, seen: Seen) -> Attempt:
        return attempt.judged_by(self._judge(attempt.draft, seen), seen)


@text_of.register
def _(target: StaticModel, request: TextRequest, recorded: bool) -> Text:
    judged_there = (
        not recorded
        and knows(request.verifier.key)
        and not request.drafter.mixed_siblings
        and request.constraint is None
        and not request.stop_strings
    )
    return DeviceText(target, request) if judged_there else Text(target, request, recorded)

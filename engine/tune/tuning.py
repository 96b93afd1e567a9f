"""A tuning: measures which drafter is fastest, with how many tokens per step, for how many texts at a time, and why.

``Tuning(request).lines()`` yields plain JSON-able dicts, described in docs/tuning.md: ``tuning`` first, then ``cost``,
``acceptance``, ``setting`` and ``estimate`` lines as they are measured, ``progress`` between them, and ``answer`` at
the end.

Not every drafter continues every prompt in every size. All drafters continue a few prompts, in two sizes each. The
better drafters then do so in all sizes. As the number of prompts grows, fewer and fewer candidates go on
(``engine.tune.narrowing``).
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from math import ceil

from engine.core.sampling import Sampling
from engine.tune.answering import Speeds, answer, best, crossing, near, ranked
from engine.tune.candidates import Candidate, by_other_rules, in_sizes
from engine.tune.checking_race import SECONDS, Race, sampled
from engine.tune.narrowing import FINALISTS, FIRST, KEPT, OTHER_SIZE, ROUNDS, SOON, margin, still_in
from engine.tune.opened_tuning import OpenedTuning
from engine.tune.other_machines import Sizes, estimates
from engine.tune.ray_writers import RayWriters
from engine.tune.remaining_time import RemainingTime
from engine.tune.resuming import Measured, resumed
from engine.tune.speed_prediction import Speed, speed_of
from engine.tune.told_lines import acceptance_lines, setting_line
from engine.tune.tuning_record import TuningRecord
from engine.tune.tuning_request import TuningRequest
from engine.tune.writing_in_turn import Writers

Line = dict
HOPELESS = 0.8  # times the speed of plain decoding below which a prediction is not checked


def unique(candidates: Iterable[Candidate]) -> list[Candidate]:
    return list({candidate.key: candidate for candidate in candidates}.values())


class Tuning:
    """One tuning. Nothing is opened or measured until the first line is taken from ``lines``.

    A later line replaces an earlier one if both have the same kind, drafter, options, size and verifier, and also the
    same prompt_kind (``acceptance`` lines), texts (``setting`` lines), or machine and texts (``estimate`` lines).
    """

    def __init__(self, request: TuningRequest) -> None:
        self.request = request
        self.sampling = Sampling(request.temperature, request.top_k, request.top_p, request.seed)
        self._opened: OpenedTuning | None = None
        self._record: TuningRecord | None = None
        self._measured = Measured()
        self._time = RemainingTime()
        self._setting_lines: dict[tuple, Line] = {}  # settings
        self._told_prompts: dict[tuple, int] = {}

    def lines(self) -> Iterator[Line]:
        """Yields all lines of the tuning. If the generator is closed, the work stops after the current text, and the
        record keeps the lines written so far. Raises UserError, one sentence, for models, prompts or a record that do
        not fit."""
        yield self._open()
        if self._record is not None:
            yield from (line for line in self._record.lines if line["kind"] != "answer")
        yield from self._halve()
        yield from self._check()
        yield from self._closing_lines()

    def answer_so_far(self) -> list[Line]:
        """The lines that follow from the measurements so far, with the ``answer`` line last; to be called after
        ``lines`` was closed. The lines are also written to the record. Empty if nothing was measured."""
        if self._opened is None:
            return []
        lines = [
            line
            for candidate in self._measured.candidates.values()
            for line in self._acceptance(candidate)
        ]
        return [*lines, *self._closing_lines()]

    def _open(self) -> Line:
        opened = self._opened = OpenedTuning(self.request, self.sampling)
        if self.request.ray is None:
            self._writers = Writers(opened, self.sampling, self.request.new_tokens)
        else:
            self._writers = RayWriters(self.request)
        if self.request.record is not None:
            self._record = TuningRecord(self.request.record, opened.header)
            classes = {
                candidate.cls.key: candidate.cls for candidate in (opened.plain, *opened.first)
            }
            name = self.request.record.name
            self._measured = resumed(self._record.lines, classes, opened.costs, name)
            for candidate in self._measured.candidates.values():
                self._told_prompts[candidate.key] = candidate.prompts
            for line in self._record.lines:
                if line["kind"] == "setting":
                    key = line["drafter"], line["size"], line["verifier"]
                    self._setting_lines[key, line["texts"]] = line
        self._plain = self._measured.known(opened.plain)
        return opened.header

    def _costs(self, lines: Iterator[Line]) -> Iterator[Line]:
        for line in lines:
            yield self._kept(line)
            yield self._time.line("Measuring what a pass costs")

    def _halve(self) -> Iterator[Line]:
        opened, known = self._opened, self._measured.known
        begun = [known(candidate) for candidate in opened.first]
        drafters = max(FINALISTS, ceil(len({candidate.cls for candidate in begun}) / 3))
        self._time.other = (len(opened.texts) + 1) * 3 * SECONDS
        begun = yield from self._write_on(begun, FIRST, drafters * 4 * FIRST, OTHER_SIZE)
        yield from self._costs(opened.costs.of_one_text(opened.models.target, opened.draft))
        fast = list({candidate.cls: candidate for candidate in begun}.values())[:drafters]
        sized = [known(variant) for candidate in fast for variant in in_sizes(candidate)]
        tried = yield from self._write_on(unique([*begun, *sized]), FIRST, 3 * KEPT * FIRST)
        fast = tried[:FINALISTS]
        ruled = [
            variant for candidate in fast for variant in by_other_rules(candidate, self.sampling)
        ]
        left = [*tried, *map(known, ruled)]
        ahead = yield from self._write_on(left, ROUNDS[-1])
        speed = speed_of(ahead[0], self._plain, 1, opened.costs) if ahead else None
        if speed is not None and speed.ratio >= 1:
            most = max(len(candidate.all.lengths) for candidate in left)
            costs = opened.costs.of_several(opened.models.target, opened.texts, most)
            yield from self._costs(costs)
            yield from self._write_on(left, ROUNDS[-1])  # others may be faster for several texts

    def _write_on(
        self, candidates: list[Candidate], upto: int, after: int = 0, slack: float = 0.0
    ) -> Generator[Line, None, list[Candidate]]:
        """Let candidates continue the first ``upto`` prompts, in rounds (``ROUNDS``): after each round only the
        candidates that ``still_in`` chooses go on. Returns the candidates that are left after the last round, the
        fastest first.

        after: how many texts will probably still have to be written when this call has ended; used only to estimate the
        remaining time. slack: as for ``still_in``.
        """
        upto = min(upto, len(self._opened.prompts))
        for prompts in [*(count for count in ROUNDS if count < upto), upto]:
            yield from self._write(candidates, prompts, after)
            then = [candidate.after(prompts) for candidate in candidates]
            speeds = self._speeds(then, checked=False)
            candidates = still_in(candidates, speeds, self._opened.texts, prompts, slack)
        return candidates

    def _speeds(self, candidates: Sequence[Candidate], checked: bool = True) -> Speeds:
        """The known speeds of these candidates, by key and number of texts: checked speeds where there are any,
        otherwise predicted ones. checked: False for predicted speeds only."""
        speeds: dict = {}
        for texts in self._opened.texts:
            for candidate in candidates:
                speed = self._measured.checked.get((candidate.key, texts)) if checked else None
                speed = speed or speed_of(candidate, self._plain, texts, self._opened.costs)
                if speed is not None:
                    speeds[candidate.key, texts] = speed
        return speeds

    def _write(self, candidates: Sequence[Candidate], upto: int, after: int) -> Iterator[Line]:
        """Let each of these candidates, and plain decoding, continue the first ``upto`` prompts. A candidate skips the
        prompts that it has continued already. after: how many texts will probably still have to be written when this
        call has ended; used only to estimate the remaining time."""
        upto = min(upto, len(self._opened.prompts))
        self._time.texts = after + sum(max(0, upto - candidate.prompts) for candidate in candidates)
        for candidate in self._writers.write(self._plain, candidates, upto):
            self._time.wrote()
            yield self._time.line(f"Writing with {candidate.cls.title}")
            if candidate.prompts % FIRST == 0 or candidate.prompts in (SOON, upto):
                yield from self._acceptance(candidate)
                yield from self._settings([] if candidate.plain else [candidate])

    def _check(self) -> Iterator[Line]:
        """Run the best candidates beside plain decoding: first for one text at a time, then for the two numbers of
        texts between which the best one stops being faster than plain decoding."""
        opened, furthest = self._opened, self._furthest()
        self._time.texts, tried = 0, []
        while (texts := self._unchecked(furthest, tried)) is not None:
            tried.append(texts)
            speeds = self._speeds(furthest)
            first = best(furthest, speeds, 1)
            rivals = near(furthest, speeds, texts, margin(furthest[0].prompts))
            runners = rivals[: FINALISTS if texts == 1 else 1]
            if texts > 1 and (first.key, texts) in speeds:
                runners = [first] if first in rivals else [*runners, first]
            contest = Race(
                [self._plain, *runners],
                opened.models,
                self.sampling,
                self.request.new_tokens,
            )
            for rates in contest.run([prompt for _, prompt in opened.prompts], texts):
                self._time.other = 2 * (1 + len(runners)) * SECONDS
                yield self._time.line(f"Checking {texts} text{'s' * (texts > 1)} at a time")
            plainly, *others = rates
            for candidate, speed in zip(runners, others, strict=True):
                then = candidate.after(sampled(texts))
                expected = speed_of(then, self._plain, texts, opened.costs)
                if plainly and speed and expected:
                    checked_speed = Speed(expected.ratio * plainly, plainly, speed)
                    self._measured.checked[candidate.key, texts] = checked_speed
            yield from self._settings(runners)

    def _unchecked(self, furthest: Sequence[Candidate], tried: Collection[int]) -> int | None:
        """The next number of texts at a time that has to be checked, because the answer depends on a speed there that
        is only predicted; None if there is none. tried: numbers that were checked already."""
        speeds = self._speeds(furthest)
        first = best(furthest, speeds, 1)
        own_speeds = {texts: speed for (key, texts), speed in speeds.items() if key == first.key}
        for texts in (1, *crossing({texts: speed.ratio for texts, speed in own_speeds.items()})):
            speed = own_speeds[texts]
            if texts not in tried and speed.checked is None and speed.ratio >= HOPELESS:
                return texts
        return None

    def _furthest(self) -> list[Candidate]:
        """The candidates that have continued the most prompts, or nearly the most; only these are compared."""
        counted = [
            candidate
            for candidate in self._measured.candidates.values()
            if candidate.counts and not candidate.plain
        ]
        most = max((candidate.prompts for candidate in counted), default=0)
        return [candidate for candidate in counted if candidate.prompts > most - SOON]

    def _closing_lines(self) -> Iterator[Line]:
        opened, furthest = self._opened, self._furthest()
        if not furthest or not self._plain.counts:
            return
        yield from self._settings(furthest)
        speeds = self._speeds(furthest)
        shown = ranked(furthest, speeds, 1)[:KEPT]
        sizes = Sizes(opened.models.target.parameters, opened.draft and opened.draft.parameters)
        for machine in self.request.machines:
            for line in estimates(machine, shown, self._plain, opened.texts, sizes):
                yield self._kept(line)
        link = {
            "prompt": opened.prompts[0][0].text,
            "temperature": self.sampling.temperature,
            "seed": self.sampling.seed,
        }
        answer_line = answer(furthest, self._plain, speeds, opened.texts, link)
        if answer_line is not None:
            yield self._kept(answer_line)

    def _acceptance(self, candidate: Candidate) -> Iterator[Line]:
        """Yields the candidate's ``acceptance`` lines, unless they have been yielded for the same number of prompts
        before."""
        if candidate.counts and self._told_prompts.get(candidate.key) != candidate.prompts:
            for line in acceptance_lines(candidate):
                yield self._kept(line)
            self._told_prompts[candidate.key] = candidate.prompts

    def _settings(self, candidates: Sequence[Candidate]) -> Iterator[Line]:
        """Yields a ``setting`` line for each of these candidates and each number of texts, unless it equals the line
        that was yielded last for that candidate and number."""
        for (key, texts), speed in self._speeds(candidates).items():
            candidate = self._measured.candidates[key]
            line = setting_line(candidate, texts, speed, self._opened.exact)
            if self._setting_lines.get((key, texts)) != line:
                self._setting_lines[key, texts] = line
                yield self._kept(line)

    def _kept(self, line: Mapping) -> Line:
        record, self._record = self._record, None
        if record is not None:
            record.keep(line)  # where this fails, nothing more is kept
            self._record = record
        return dict(line)

"""Makes the lines of a trace from the engine's steps.

Token ids become text only in this module. The probabilities in the lines are those from which tokens are sampled. At
temperature 0 these would be one-hot and show nothing, so the plain softmax of the logits is shown instead.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from engine.core.detokenizer import Place, detokenizer
from engine.core.sampling import Sampling
from engine.core.step import STAGES, Step
from engine.core.tree import ROOT, DraftTree
from engine.model.language_model import LanguageModel
from engine.rules import Verifier
from engine.trace.meters import measured
from engine.trace.shown import Pairs, distributions, finite, node_probabilities, short

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Setting:
    """What a run line contains besides its prompt.

    constraint: the constraint's key, its text, and the law that an exact rule keeps under it. rule: the rule of the
    run, which the meters need. sees: the picture that the target was shown.
    """

    drafter: dict
    verifier: dict
    sampling: Sampling
    loop: str = "speculative"
    constraint: tuple[str, str, str] | None = None
    rule: Verifier | None = None
    stop_strings: tuple[str, ...] = ()
    family: str = ""
    sees: dict | None = None


class Recorder:
    """Turns the steps of one run into trace lines (as objects), and keeps the totals for the summary line."""

    def __init__(
        self,
        target: LanguageModel,
        setting: Setting,
        prompt: str,
        tokens: list[int],
        messages: Sequence[Mapping[str, str]] | None = None,
    ) -> None:
        """Begin the trace of a run. prompt: the prompt as text. tokens: the prompt as tokens. messages: the
        conversation from which the prompt was made, or None."""
        self._messages = messages
        self._words = detokenizer(target.tokenizer)
        self._target = target
        self._setting = setting
        self._prompt = prompt
        self._prompt_tokens = tokens
        self._prompt_pieces, self._end = self._words.start.pieces(tokens)
        self._totals = Totals()
        self._written: list[str] = []
        self._stop = None

    def run_line(self) -> dict:
        target, sampling = self._target, self._setting.sampling
        line = {
            "kind": "run",
            "schema": SCHEMA_VERSION,
            "target": {
                "name": target.name,
                "parameters": target.parameters,
                "vocab_size": target.vocab_size,
                "dtype": str(target.dtype).removeprefix("torch."),
                "device": str(target.device),
                "end_tokens": sorted(target.end_tokens),
                "ends_named_by": target.ends_named_by,
            },
            "drafter": self._setting.drafter,
            "verifier": self._setting.verifier,
            "loop": self._setting.loop,
            "sampling": {
                "temperature": sampling.temperature,
                "top_k": sampling.top_k,
                "top_p": sampling.top_p,
                "seed": sampling.seed,
                **dict(sampling.cuts),
            },
            "prompt": {
                "text": self._prompt,
                "tokens": self._prompt_tokens,
                "pieces": self._prompt_pieces,
            },
        }
        if self._setting.family:
            line["family"] = self._setting.family
        if target.reads_stored:
            line["target"]["weights"] = "stored"
        if target.known is not None:
            line["target"] |= {"known": target.known, "clock": "remote"}
        if target.picture is not None:
            line["picture"] = target.picture.to_dict()
        if self._setting.sees is not None:
            line["sees"] = self._setting.sees
        if self._setting.constraint is not None:
            line["constraint"] = self._constraint(*self._setting.constraint)
        if self._messages is not None:
            line["prompt"]["messages"] = [dict(turn) for turn in self._messages]
        if self._setting.stop_strings:
            line["stop_strings"] = list(self._setting.stop_strings)
        return line

    def _constraint(self, key: str, text: str, law: str) -> dict:
        verifier = self._setting.verifier
        exact = verifier.get("lossless") or verifier.get("up_to_rounding")
        return {"key": key, "text": text} | ({"law": law} if exact else {})

    def brief_line(self, step: Step) -> dict:
        """An object with only the tokens and texts that a step wrote, for runs that are not recorded. It is not a line
        of a trace."""
        return {"kind": "step", "index": step.index, "output": self._output(step)}

    def _output(self, step: Step) -> dict:
        pieces, end = self._end.pieces(step.output)
        if step.stop is not None and pieces:
            pieces[-1] += end.rest
        return {"tokens": step.output, "pieces": pieces, "final": step.final or "none"}

    def count(self, step: Step) -> None:
        """Add this step to the totals of the summary."""
        self._totals.add(step)
        self._written += self._output(step)["pieces"]
        self._end = self._end.pieces(step.output)[1]
        self._stop = step.stop

    def step_line(self, step: Step) -> dict:
        tree, verdict = step.tree, step.verdict
        shown = self._shown(step)
        faces, ends = self._nodes(tree)
        line = {
            "kind": "step",
            "index": step.index,
            "position": step.position,
            "nodes": {
                "token": tree.tokens,
                "piece": faces,
                "parent": tree.parents,
                "depth": tree.depths,
                "q": [None if q is None else short(q) for q in tree.q],
                "p": node_probabilities(tree, shown),
                "status": verdict.status,
                "source": tree.sources,
            },
            "judgements": [
                {
                    "node": j.node,
                    "rule": j.rule,
                    "p": finite(j.p),
                    "q": finite(j.q),
                    "accept": finite(j.accept),
                    "coin": finite(j.coin),
                }
                for j in verdict.judgements
            ],
            "output": self._output(step),
            "distributions": [
                _distribution(node, ends[node + 1], rows)
                for node, rows in distributions(step, shown)
            ],
            "milliseconds": {
                stage: round(step.milliseconds.get(stage, 0.0), 4) for stage in STAGES
            },
            "passes": step.passes,
            "drafter": self._exhibits(step),
        }
        if step.spans:
            line["spans"] = [
                {"lane": span.lane, "what": span.work}
                | {"start": round(span.start, 4), "end": round(span.end, 4)}
                for span in step.spans
            ]
        if step.prefill_milliseconds:
            line["prefill"] = round(step.prefill_milliseconds, 4)
        return line

    def _shown(self, step: Step) -> Tensor | None:
        if step.logits is None:
            return None
        greedy = self._setting.sampling.greedy
        return step.logits.float().softmax(-1).cpu() if greedy else step.p

    def _exhibits(self, step: Step) -> dict:
        meters = measured(step, self._setting.sampling, self._setting.rule)
        exhibits = [*step.tree.exhibits, *step.verdict.exhibits, *meters]
        if not exhibits:
            return {}
        return {"exhibits": [exhibit.to_dict(self._words.face) for exhibit in exhibits]}

    def _nodes(self, tree: DraftTree) -> tuple[list[str], list[Place]]:
        """Two lists: for each node, the text by which its token is shown after the path above it; and the decoder's
        states, first at the root and then after each node."""
        faces, ends = [], [self._end]
        for token, parent in zip(tree.tokens, tree.parents, strict=True):
            _, face, end = ends[parent + 1].add(token)
            faces.append(face)
            ends.append(end)
        return faces, ends

    @property
    def milliseconds(self) -> float:
        """The milliseconds that the engine has spent on the run so far, the prompt included."""
        return sum(self._totals.milliseconds.values())

    @property
    def mean_step(self) -> tuple[int, float]:
        """The number of steps so far, and the mean milliseconds of a step, without the pass over the prompt."""
        steps, spent = self._totals.steps, self._totals.milliseconds
        return steps, sum(spent[stage] for stage in STAGES) / steps if steps else 0.0

    def summary_line(self, stop: str | None = None) -> dict:
        """The summary line. stop: "cancelled" or "error" if the run did not end by itself; None: the reason that the
        last step gave."""
        return self._totals.summary(stop or self._stop, "".join(self._written))


class Totals:
    """Running totals over the steps of a run, from which the summary line is made."""

    def __init__(self) -> None:
        self.steps = 0
        self.passes: dict[str, int] = {}
        self.new_tokens = 0
        self.histogram: list[int] = []
        self.by_depth: list[dict] = []
        self.milliseconds = dict.fromkeys(("prefill", *STAGES), 0.0)

    def add(self, step: Step) -> None:
        self.steps += 1
        for model, count in step.passes.items():
            self.passes[model] = self.passes.get(model, 0) + count
        self.new_tokens += len(step.output)
        accepted = max(0, len(step.verdict.accepted) - step.tree.forced)
        self.histogram += [0] * (accepted + 1 - len(self.histogram))
        self.histogram[accepted] += 1
        self.milliseconds["prefill"] += step.prefill_milliseconds
        for stage in STAGES:
            self.milliseconds[stage] += step.milliseconds.get(stage, 0.0)
        self._add_depths(step)

    def _add_depths(self, step: Step) -> None:
        if not step.verdict.walk:
            return  # tokens that nobody checked say nothing about acceptance
        tree, forced = step.tree, step.tree.forced
        judged = {entry.node for entry in step.verdict.judgements}
        # forced tokens are not drafted; depths are counted from the last forced token
        places = [place for place in step.verdict.walk if place >= forced + ROOT]
        for place in {*places} & {*tree.parents}:
            depth = 0 if place == ROOT else tree.depths[place]
            self._depth(depth + 1 - forced)["reached"] += 1
        for name, nodes in (("judged", judged), ("accepted", step.verdict.accepted)):
            for node in nodes:
                if node >= forced:
                    self._depth(tree.depths[node] - forced)[name] += 1

    def _depth(self, depth: int) -> dict:
        while len(self.by_depth) < depth:
            row = {"depth": len(self.by_depth) + 1, "reached": 0, "judged": 0, "accepted": 0}
            self.by_depth.append(row)
        return self.by_depth[depth - 1]

    def summary(self, stop: str, text: str) -> dict:
        total = sum(self.milliseconds.values())
        reached = sum(row["reached"] for row in self.by_depth)
        accepted = sum(row["accepted"] for row in self.by_depth)
        milliseconds = self.milliseconds | {"total": total}
        return {
            "kind": "summary",
            "new_tokens": self.new_tokens,
            "steps": self.steps,
            "target_calls": self.passes.get("target", 0),
            "passes": self.passes,
            "mean_accepted": self.new_tokens / self.steps if self.steps else None,
            "acceptance_rate": accepted / reached if reached else None,
            "accepted_histogram": self.histogram,
            "acceptance_by_depth": self.by_depth,
            "milliseconds": {name: round(value, 4) for name, value in milliseconds.items()},
            "tokens_per_second": 1000 * self.new_tokens / total if total else None,
            "stop": stop,
            "text": text,
        }


def _distribution(node: int, end: Place, rows: dict[str, Pairs]) -> dict:
    """The entry of one node in "distributions". end: the decoder's state after the node. rows: name of a distribution
    -> its tokens and probabilities."""
    lists = {
        name: [[token, end.add(token).face, value] for token, value in row]
        for name, row in rows.items()
    }
    return {"node": node} | lists

"""Makes the trace of one request to vLLM, line by line (engine/trace/schema.json).

All drafts are shown as chains. A text ends where vLLM ends it. Drafted tokens that the sampler accepted beyond that
end have the status "ignored".
"""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime

from engine.core.detokenizer import Place, detokenizer
from engine.serving.vllm.line_totals import LineTotals

FAMILIES = {"ngram": "retrieval", "ngram_gpu": "retrieval", "suffix": "retrieval"}
FAMILIES |= dict.fromkeys(("dflash", "dspark"), "diffusion")
FAMILIES |= dict.fromkeys(("draft_model", "custom_class"), "chain")
"""Family of a drafter by vLLM's method; all other methods are heads."""
SPARE = 6000
"""The most bytes of a summary line, apart from the text in it."""


class Words:
    """Turns token ids into text. If the tokenizer cannot be loaded, a token is shown by its id."""

    def __init__(self, name: str, revision: str | None) -> None:
        try:
            from transformers import AutoTokenizer

            self._tokenizer = AutoTokenizer.from_pretrained(
                name, revision=revision, local_files_only=True, trust_remote_code=False
            )
            self.start: Place | Numbers = detokenizer(self._tokenizer).start
        except Exception:  # noqa: BLE001 - a tokenizer of a kind of its own
            self.start = Numbers()


class Numbers:
    """Stands in for ``engine.core.detokenizer.Place`` if there is no tokenizer: the text of a token is its id."""

    rest = ""

    def add(self, token: int) -> tuple[str, str, Numbers]:
        return f"⟨{token}⟩", f"⟨{token}⟩", self

    def pieces(self, tokens) -> tuple[list[str], Numbers]:
        return [f"⟨{token}⟩" for token in tokens], self


class RequestRecord:
    """The trace of one request. begun: the data that ``StepTaps`` noted when the request began. about: facts that all
    requests of the server share."""

    def __init__(self, begun: dict, about: dict, words: Words) -> None:
        self._begun, self._about = begun, about
        self._prompt_pieces, self._end = words.start.pieces(begun["prompt"])
        self._totals = LineTotals()
        self._prefill = 0.0
        self._beyond = self._over = 0
        self._line: dict = {}
        self._stop: str | None = None
        self.end_bytes = SPARE
        """The most bytes that the summary takes."""

    def run_line(self) -> str:
        begun, about = self._begun, self._about
        judged = "greedy" if begun["temperature"] == 0 else "rejection"
        exact = about["rule"] != "synthetic"
        method, draft = about["method"], _last(about["draft"])
        when = datetime.fromtimestamp(begun["when"], UTC)
        return _line(
            {
                "kind": "run",
                "schema": 1,
                "recorded": {
                    "engine": about["engine"],
                    "request": begun["request"][:400],
                    "began": when.isoformat(timespec="milliseconds"),
                },
                "target": {
                    "name": _last(about["target"]),
                    "parameters": 0,
                    "vocab_size": about["vocab_size"],
                    "dtype": about["dtype"],
                    "device": about["device"],
                },
                "drafter": {
                    "key": f"vllm_{method}",
                    "title": f"{method} in vLLM",
                    "family": FAMILIES.get(method, "heads"),
                    "options": {"num_speculative_tokens": about["tokens"]},
                    **({"parts": {"draft": draft[-200:]}} if draft not in ("", method) else {}),
                },
                "verifier": {
                    "key": judged if exact else "synthetic",
                    "lossless": False,
                    "options": {},
                    **({"up_to_rounding": True} if exact else {}),
                },
                "sampling": {
                    "temperature": begun["temperature"],
                    "top_k": begun["top_k"],
                    "top_p": begun["top_p"],
                    "seed": max(0, begun["seed"] or 0),
                    **({"min_p": begun["min_p"]} if begun["min_p"] else {}),
                },
                "prompt": {
                    "text": "".join(self._prompt_pieces),
                    "tokens": begun["prompt"],
                    "pieces": self._prompt_pieces,
                },
            }
        )

    def step(self, step: dict) -> str:
        """The line of a step; "" if the step wrote no token of this request. After each line, ``keep`` or ``drop``
        must be called. step: the request's share of a parcel."""
        spent = {stage: step["milliseconds"][stage] for stage in ("draft", "verify", "judge")}
        if step["discarded"] or self._stop is not None or not step["written"]:
            self._prefill += sum(spent.values())  # a part of the prompt was read
            return ""
        totals = self._totals
        line = {"kind": "step", "index": totals.steps}
        line["position"] = len(self._begun["prompt"]) + totals.new_tokens
        line |= self._outcome(step)
        if not totals.steps:  # the first token comes with the pass over the prompt
            line["prefill"] = round(self._prefill + spent.pop("verify"), 4)
        stages = ("draft", "verify", "judge", "commit")
        line["milliseconds"] = {stage: round(spent.get(stage, 0.0), 4) for stage in stages}
        self._line = line
        pieces = json.dumps(line["output"]["pieces"], ensure_ascii=False)
        self.end_bytes += len(pieces.encode("utf-8", "replace"))
        return _line(line)

    def keep(self) -> None:
        """Add the last step to the totals, because its line has been written."""
        self._totals.add(self._line)
        self._beyond += self._over

    def drop(self) -> None:
        """Leave the last step out of the totals, because its line could not be written; the trace then ends before
        that step."""
        self._stop = None

    def _outcome(self, step: dict) -> dict:
        drafted = step.get("drafted", [])
        if -1 in drafted:  # vLLM fills up with -1, for instance what a grammar forbids
            drafted = drafted[: drafted.index(-1)]
        size = len(drafted)
        kept = min(len(step["written"]) - 1, size)
        faces, ends = self._faces(drafted)
        tokens = self._within(step["written"])
        shown = min(kept, len(tokens))
        self._over = kept - shown
        final = "none" if len(tokens) <= kept else "bonus" if kept == size else "recovered"
        judged = range(shown + (final == "recovered"))
        pieces, self._end = self._end.pieces(tokens)
        if self._stop is not None:
            pieces[-1] += self._end.rest
        q = step.get("q")
        source = self._about["method"] + ("" if q is not None else ", q one-hot")
        statuses = ["accepted"] * shown + ["rejected"] * (len(judged) - shown)
        return {
            "nodes": {
                "token": drafted,
                "piece": faces,
                "parent": [*range(-1, size - 1)],
                "depth": [*range(1, size + 1)],
                "q": [None] * size if q is None else [_short(value) for value in q[:size]],
                "p": [_short(value) for value in step.get("p", [])[:size]],
                "status": statuses + ["ignored"] * (size - len(judged)),
                "source": [source] * size,
            },
            "judgements": [self._judgement(step, node, node < kept) for node in judged],
            "output": {"tokens": tokens, "pieces": pieces, "final": final},
            "distributions": [
                self._distribution(step, node, drafted[node], ends[node]) for node in judged
            ],
            "passes": {"target": 1},
            "drafter": {},
        }

    def _within(self, written: list[int]) -> list[int]:
        """The written tokens up to the end of the text, if the text ends among them. The end is found by the same
        conditions as in vLLM's ``check_stop``."""
        begun, prompt = self._begun, len(self._begun["prompt"])
        for count, token in enumerate(written, 1):
            size = self._totals.new_tokens + count
            if token in begun["ends"]:
                self._stop = "eos"
            elif token in begun["stops"]:
                self._stop = "stop"
            elif prompt + size >= self._about["context"]:
                self._stop = "context"
            elif begun["most"] is not None and size >= begun["most"]:
                self._stop = "length"
            if self._stop is not None:
                return written[:count]
        return written

    def _faces(self, drafted: list[int]) -> tuple[list[str], list]:
        """Two lists. The first has the text by which each drafted token is shown. The second has the decoder's state
        before each drafted token, and one more for the state after the last."""
        faces, ends = [], [self._end]
        for token in drafted:
            _, face, end = ends[-1].add(token)
            faces.append(face)
            ends.append(end)
        return faces, ends

    def _judgement(self, step: dict, node: int, kept: bool) -> dict:
        """How vLLM judged a drafted token: at temperature 0 by whether it is the target's likeliest token, otherwise
        by comparing a random number with p ÷ q."""
        if self._about["rule"] == "synthetic":
            return _judgement(node, "synthetic", None, None, float(kept), None)
        if self._begun["temperature"] == 0:
            return _judgement(node, "greedy", float(kept), None, float(kept), None)
        p, q = step["p"][node], step["q"][node] if "q" in step else 1.0
        accept = _short(p / q) if q > 0 else 0.0
        rule = "iid" if "q" in step else "one_hot"
        return _judgement(node, rule, _short(p), _short(q), accept or 0.0, step["coins"][node])

    def _distribution(self, step: dict, node: int, drafted: int, end) -> dict:
        """The entry of "distributions" for a drafted token: p and q of the likeliest tokens and of the drafted token.
        end: the decoder's state before the token."""

        def few(name: str) -> list:
            values = step.get(f"top_{name}")
            if values is None or values[node] is None:
                return []
            row = dict(zip(step["top"][node], values[node], strict=True))
            row.setdefault(drafted, step[name][node])
            entries = [
                (token, rounded)
                for token, value in row.items()
                if (rounded := _short(value)) is not None
            ]
            entries.sort(key=lambda pair: -pair[1])
            return [[token, end.add(token)[1], value] for token, value in entries]

        return {"node": node - 1, "p": few("p"), "q": few("q"), "residual": []}

    def summary_line(self) -> str:
        """The summary line. If vLLM ended the request for a reason other than its tokens, the line says
        "cancelled"."""
        summary = self._totals.summary(self._stop or "cancelled")
        return _line(summary | {"beyond_end": self._beyond})


def _last(name: str) -> str:
    """The last component of a path, or the model's name without its owner."""
    return name.rstrip("/").rpartition("/")[2]


def _judgement(node: int, rule: str, p, q, accept, coin) -> dict:
    return {"node": node, "rule": rule, "p": p, "q": q, "accept": accept, "coin": coin}


def _short(value: float | None) -> float | None:
    """A probability with seven significant digits; None for NaN and infinity."""
    if value is None or not math.isfinite(value):
        return None
    return min(1.0, float(f"{value:.7g}"))


def _line(entry: dict) -> str:
    return json.dumps(entry, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n"

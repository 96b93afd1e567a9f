"""Reads acceptance from a server's answers: vLLM's per-request metrics, SGLang's meta_info, llama.cpp's timings.

A file holds one answer as JSON, a list of answers, one answer per line, or a stream (``data: {...}``). Each chunk of a
stream repeats the counts so far, so only the last of the chunks with the same ``id`` is used.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping

from engine.bridges.imported_line import counted, imported_line
from engine.bridges.step_counts import StepCounts, whole
from engine.errors import UserError

MOST_ANSWERS = 1_000_000
STREAMED, ENDED = "data:", "[DONE]"
UNKNOWN_LENGTHS = (
    "The length of each draft is not told, so neither is how often a position was reached; {}."
)
ASK_VLLM = "start vLLM with `--per-request-spec-decode-metrics detailed`"
ADAPTED = (
    "SGLang does not tell the length of each draft. Drafted tokens ÷ steps is the same whole number in every answer, so every draft is "
    "taken to have this length; with `--speculative-adaptive` that need not be so."
)
NO_POSITIONS = "llama.cpp’s timings hold totals, and no positions; its /metrics has positions."
CORRECT = ("spec_num_correct_drafts", "spec_accepted_drafts", "spec_accept_token_num")
PROPOSED = ("spec_num_proposed_drafts", "spec_proposed_drafts", "spec_draft_token_num")
BY_KEPT = ("spec_correct_drafts_histogram", "spec_accept_histogram")
"""SGLang's names for the histogram of steps by kept tokens, the newest name first. CORRECT and PROPOSED above hold
SGLang's names for the number of kept and of drafted tokens."""


def lines_of_answers(text: str, name: str) -> list[dict]:
    """One ``acceptance`` line for each engine whose answers the file holds. Raises UserError, one sentence."""
    by_engine: dict[str, dict[object, tuple[Mapping, Mapping]]] = {}
    for key, answer in _answers(text, name):
        for place, (engine, record) in enumerate(_records(answer)):
            by_engine.setdefault(engine, {})[key, place] = record, answer
    lines = []
    for engine, answers in by_engine.items():
        try:
            lines.append(READERS[engine](list(answers.values()), name))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            words = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise UserError(f"An answer of {engine} in {name} is broken: {words[:120]}.") from None
    if not lines:
        raise UserError(
            f"{name} holds no answer that tells of drafted tokens; for vLLM, {ASK_VLLM}."
        )
    return lines


def _answers(text: str, name: str) -> Iterator[tuple[object, dict]]:
    """Yields each answer with an identifier: its ``id``, or else its position in the file."""
    stream, streamed = 0, text[:1000].lstrip().startswith(STREAMED)
    for place, answer in enumerate(_objects(text, name)):
        if answer == ENDED:
            stream += 1
        elif place >= MOST_ANSWERS:
            raise UserError(f"{name} holds more than {MOST_ANSWERS:,} answers.")
        elif isinstance(answer, dict):
            own = answer.get("id")
            named = own if isinstance(own, str) and own else None
            yield named or (("stream", stream) if streamed else place), answer


def _objects(text: str, name: str) -> Iterator[object]:
    try:
        whole_file = json.loads(text)
        yield from whole_file if isinstance(whole_file, list) else [whole_file]
        return
    except (ValueError, RecursionError):
        pass
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip().removeprefix(STREAMED).strip()
        if line == ENDED:
            yield ENDED
        elif line and not line.startswith((":", "event:", "id:", "retry:")):
            try:
                yield json.loads(line)
            except (ValueError, RecursionError):
                raise UserError(f"Line {number} of {name} is not valid JSON.") from None


def _records(answer: dict) -> Iterator[tuple[str, Mapping]]:
    """Yields the name of the engine and its record of drafting, for each field of an answer, or of one of its choices,
    in which the engines store such records."""
    inside = [answer, answer.get("metrics"), answer.get("meta_info"), answer.get("sglext")]
    choices = answer.get("choices")
    if isinstance(choices, list):
        inside += [choice.get("meta_info") for choice in choices if isinstance(choice, dict)]
    for held in [choice for choice in inside if isinstance(choice, dict)]:
        for record in (held, held.get("speculative_decoding"), held.get("spec_tokens_details")):
            if isinstance(record, dict):
                for engine, field in (("vLLM", "num_spec_steps"), ("SGLang", "spec_verify_ct")):
                    if field in record:
                        yield engine, record
    timings = answer.get("timings", answer)
    if isinstance(timings, dict) and "draft_n" in timings:
        yield "llama.cpp", timings


Answers = list[tuple[Mapping, Mapping]]
"""For each answer, its record of drafting and the whole answer."""


def _of_vllm(answers: Answers, name: str) -> dict:
    counts, sizes = StepCounts(), set()
    for record, _ in answers:
        before = counts.total
        _count_vllm(record, counts)
        if counts.total - before != whole(record["num_spec_steps"]):
            raise ValueError("its steps do not add up")
        sizes.add(record.get("num_spec_tokens"))
    if counts.accepted != sum(whole(record["num_accepted_draft_tokens"]) for record, _ in answers):
        raise ValueError("its kept tokens do not add up")
    lacks = "" if counts.drafted is not None else UNKNOWN_LENGTHS.format(ASK_VLLM)
    fields = counted(counts) | {
        "drafted": sum(whole(numbers["num_draft_tokens"]) for numbers, _ in answers)
    }
    size = whole(sizes.pop()) if len(sizes) == 1 and None not in sizes else None
    return imported_line(
        "vLLM", name, lacks, size=size, **fields, **_written(answers), requests=len(answers)
    )


def _count_vllm(record: Mapping, counts: StepCounts) -> None:
    """Add the record's steps to ``counts``, from the most exact data in it: every step, or steps by drafted and kept
    tokens, or steps by kept tokens only."""
    steps, lengths = record.get("per_step_accepted"), record.get("per_step_drafted")
    table = record.get("acceptance_histogram_by_draft_length")
    if steps is not None and lengths is not None:
        for kept, drafted in zip(steps, lengths, strict=True):
            counts.add(drafted, kept)
        return
    if isinstance(table, dict):
        for drafted, row in table.items():
            for kept, times in enumerate(row):
                if times:
                    counts.add(int(drafted), kept, times)
        return
    size, steps = record.get("num_spec_tokens"), whole(record["num_spec_steps"])
    fixed = size is not None and record["num_draft_tokens"] == whole(size) * steps
    for kept, times in enumerate(record["acceptance_histogram"]):
        if times:
            counts.add(size if fixed else None, kept, times)


def _of_sglang(answers: Answers, name: str) -> dict:
    records = [record for record, _ in answers]
    lengths = set()
    for record in records:
        steps, proposed = whole(record["spec_verify_ct"]), _first(record, PROPOSED)
        if steps:
            lengths.add(
                proposed // steps if proposed is not None and proposed % steps == 0 else None
            )
    fixed = lengths.pop() if len(lengths) == 1 else None
    counts, has_rows = StepCounts(), True
    for record in records:
        row = next((record[key] for key in BY_KEPT if record.get(key)), None)
        has_rows = has_rows and (row is not None or not record["spec_verify_ct"])
        for kept, times in enumerate(row or ()):
            if times:
                counts.add(fixed, kept, times)
        if row and sum(row) != record["spec_verify_ct"]:
            raise ValueError("its steps do not add up")
    totals = {
        "steps": sum(whole(record["spec_verify_ct"]) for record in records),
        "drafted": _all(_first(record, PROPOSED) for record in records),
    }
    accepted = _all(_first(record, CORRECT) for record in records)
    more = _written(answers) | {"requests": len(answers)}
    if not has_rows:
        lacks = "These answers have no histogram, so nothing is known of positions."
        return imported_line("SGLang", name, lacks, **totals, accepted=accepted, **more)
    lacks = UNKNOWN_LENGTHS.format("SGLang has it nowhere") if fixed is None else ADAPTED
    return imported_line("SGLang", name, lacks, size=fixed, **(counted(counts) | totals), **more)


def _of_llama_cpp(answers: Answers, name: str) -> dict:
    records = [record for record, _ in answers]
    drafted, accepted = (
        [whole(record[key]) for record in records] for key in ("draft_n", "draft_n_accepted")
    )
    if any(kept > all_of for kept, all_of in zip(accepted, drafted, strict=True)):
        raise ValueError("more tokens are kept than drafted")
    return imported_line(
        "llama.cpp",
        name,
        NO_POSITIONS,
        steps=_all(_first(record, ("draft_n_verif_steps",)) for record in records),
        drafted=sum(drafted),
        accepted=sum(accepted),
        new_tokens=_all(_first(record, ("predicted_n",)) for record in records),
        milliseconds=_milliseconds(records),
        requests=len(answers),
    )


def _milliseconds(records: list[Mapping]) -> dict | None:
    times = [record.get("predicted_ms") for record in records]
    usable = all(
        isinstance(milliseconds, int | float) and 0 < milliseconds < 1e12 for milliseconds in times
    )
    return {"total": round(sum(times), 3)} if usable else None


def _written(answers: Answers) -> dict:
    """The field ``new_tokens``: the number of tokens in all answers, or None if an answer does not give its number."""
    tokens = []
    for record, answer in answers:
        usage = answer.get("usage") if isinstance(answer.get("usage"), dict) else {}
        tokens.append(_first({**usage, **record}, ("completion_tokens",)))
    return {"new_tokens": _all(tokens)}


def _first(record: Mapping, names: tuple[str, ...]) -> int | None:
    return next((whole(record[name]) for name in names if record.get(name) is not None), None)


def _all(values) -> int | None:
    values = list(values)
    return None if None in values else sum(values)


READERS: dict[str, Callable[[Answers, str], dict]] = {
    "vLLM": _of_vllm,
    "SGLang": _of_sglang,
    "llama.cpp": _of_llama_cpp,
}
